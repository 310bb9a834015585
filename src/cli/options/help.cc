#include "cli/options/help.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "build_info.h"
#include "process/transport/transport_spec.h"
#include "zookeeper/connection.h"

namespace zklock::cli {
namespace {

constexpr std::size_t kHelpColumn = 34;

/// Returns "  -w,--wait DURATION              give up after this long in the queue\n".
std::string HelpLine(const OptionSpec& option) {
  const bool has_both = option.letter != '\0' && !option.name.empty();
  std::string line = "  " + (has_both ? std::string{'-', option.letter, ','} : "") + option.Name();
  if (!option.IsFlag()) line += " " + std::string(option.metavar);
  if (line.size() + 2 > kHelpColumn) line += "\n";
  const std::size_t begin = line.rfind('\n') + 1;  // 0 if there is none
  line.resize(begin + std::max(line.size() - begin, kHelpColumn), ' ');
  return line + option.Help() + "\n";
}

constexpr std::string_view kRunFooter =
    R"(LOCK is a znode path: /jobs/backup as it is, backup below --root.
DURATION: 90, 1.5, 500ms, 30s, 5m, 2h, 1d, 1h30m (plain numbers are seconds).

exit status:
  the command's    it ran under the lock; killed by signal N: 128+N
  126, 127         it cannot be executed, or was not found
  64               usage error
  69               no server gave a session in time
  70, 71           a defect of zklock, an error of the system
  75 (or -E N)     the command was not run because of other contenders
  76               the lock was lost while it ran; it was terminated first
  77               the servers refused: ACL or credentials
  78               the LOCK cannot be used like this
  124              it ran for --max-run, and was terminated
  128+N            ended by signal N while waiting
)";

constexpr std::string_view kInspectFooter =
    R"(A LOCK that holds contenders is shown with its queue, any other path as the list
of the locks below it; without LOCK the locks below --root.

exit status:
  0                shown; with --quiet: nobody holds it
  1                --servers-report: something should be fixed
  75               with --quiet: held
  76               with --mine: no longer held
  others           as for 'zklock exclusive'; with --check as a plugin's
)";

constexpr std::string_view kReleaseFooter =
    R"(LOCK is a znode path. Without --contender, --holders or --all, the hold of this
shell (--hold) is released. With one of them, those contenders are asked to
release; with --force, the next command may start before the loser's has ended.

exit status:
  0                released, or asked to
  75               there was nothing to release
  others           as for 'zklock exclusive'
)";

constexpr char kShortFooter[] = R"(
These are the options that most runs need. All of them, and the exit statuses:
zklock {} --help
)";

// In the order in which the help lists them.
constexpr std::pair<Section, std::string_view> kHeadings[] = {
    {Section::kView, "What is shown"},
    {Section::kTargets, "What to release, and how"},
    {Section::kWaiting, "Waiting"},
    {Section::kSharing, "Sharing"},
    {Section::kReservations, "Reservations"},
    {Section::kCommand, "The command and its end"},
    {Section::kServers, "Servers and access"},
    {Section::kOutput, "Output"},
};

std::string_view FooterOf(const SubcommandSpec& subcommand) {
  if (FindSubcommand(subcommand.name) == nullptr) return "";  // --print-config
  if (subcommand.bit == kInspect) return kInspectFooter;
  return subcommand.bit == kRelease ? kReleaseFooter : kRunFooter;
}

}  // namespace

std::string OverviewText() {
  return R"(zklock runs a command while it holds a ZooKeeper lock.

usage:
  zklock exclusive [OPTIONS] LOCK... -- COMMAND [ARG...]   one at a time
  zklock read      [OPTIONS] LOCK... -- COMMAND [ARG...]   readers together,
  zklock write     [OPTIONS] LOCK... -- COMMAND [ARG...]     a writer alone
  zklock try       [OPTIONS] LOCK... -- COMMAND [ARG...]   at once or not at all
  zklock inspect   [OPTIONS] [LOCK]                        show holders and waiters
  zklock release   [OPTIONS] LOCK                          release, or ask others to

  zklock SUBCOMMAND --help   the options of a subcommand
  zklock --version           versions of zklock and its client library
  zklock --print-config      each option's value, and where it comes from

The servers are named by --servers or $ZKLOCK_SERVERS; 127.0.0.1:2181 if not.

example:
  zklock exclusive --servers zk1:2181,zk2:2181 /jobs/backup -- ./backup.sh
)";
}

std::string VersionText() {
  return fmt::format("zklock {}\nZooKeeper C client {}\ntransports: proxy command{}\n", kVersion,
                     zookeeper::ClientLibraryVersion(),
                     process::FindTransportProgram() ? ", TLS, SASL" : "");
}

std::string HelpText(const SubcommandSpec& subcommand, const std::vector<std::string>& arguments) {
  const auto options = OptionsOf(subcommand.bit);
  const bool is_short = subcommand.RunsCommand() &&
                        std::find(arguments.begin(), arguments.end(), "--help") == arguments.end();
  std::string text = fmt::format("usage: zklock {} {}\n", subcommand.name, subcommand.arguments);
  for (const auto& [section, heading] : kHeadings) {
    std::string lines;
    for (const OptionSpec* option : options) {
      const bool is_shown = option->section == section && (option->is_common || !is_short);
      if (is_shown) lines += HelpLine(*option);
    }
    if (!lines.empty()) text += fmt::format("\n{}:\n{}", heading, lines);
  }
  if (is_short) return text + fmt::format(kShortFooter, subcommand.name);
  const std::string_view footer = FooterOf(subcommand);
  return footer.empty() ? text : fmt::format("{}\n{}", text, footer);
}

}  // namespace zklock::cli
