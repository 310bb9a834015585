// Each option of each subcommand in each situation: a LOCK that is free, busy, held above the run,
// or on a server that does not exist. An option in the program's table without a row here fails the
// test.

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/options/option_rows.h"
#include "cli/options/option_table.h"
#include "cli/zklock.h"
#include "support/contender_names.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

constexpr std::size_t kAtOnce = 8;

/// Runs "$@" as a child of a shell that may hold LOCK, with values that only the shell knows.
constexpr char kInShell[] = R"sh(
trap '' TERM
trap : INT
if [ "$SHELL_HOLDS" = yes ]; then
  "$Z" exclusive $HOLDER --kill-after 1ms --hold "$L" || exit 99
fi
for word; do
  shift
  case $word in
    SHELL) word=$$ ;;
    NAME)
      word=$("$Z" inspect --verbose "$L" | grep -o '[^ ]*-lock-[0-9]*')
      word=${word:-none}
      ;;
  esac
  set -- "$@" "$word"
done
"$@"
status=$?
if [ "$RELEASES" = yes ] && [ $status = 0 ]; then
  ZKLOCK_AUTH_FILE=$AUTH "$Z" release --quiet "$L"
fi
exit $status
)sh";

class Table {
 public:
  /// `from_file`: the options are passed as lines of a configuration file.
  explicit Table(const std::string& subcommand, bool from_file = false)
      : subcommand_(subcommand), from_file_(from_file) {
    (void)files_.Write("config", "");
    REQUIRE(chmod(files_.Write("credentials", "digest:user:password\n").c_str(), 0600) == 0);
    tree_.Create(above_);  // with an open ACL, although some runs create LOCKs with credentials
  }

  void Check(const Rows& rows) {
    std::vector<Cell> cells;
    for (const Row& row : rows) {
      for (const auto& [situation, outcome] : row.outcomes) {
        cells.push_back({row, situation, outcome, NextLock()});
      }
    }
    for (std::size_t begin = 0; begin < cells.size(); begin += kAtOnce) {
      const std::size_t end = std::min(begin + kAtOnce, cells.size());
      for (std::size_t i = begin; i < end; ++i) Start(cells[i]);
      for (std::size_t i = begin; i < end; ++i) Free(cells[i]);
      for (std::size_t i = begin; i < end; ++i) CheckEnd(cells[i]);
    }
  }

 private:
  struct Cell {
    const Row& row;
    Situation situation;
    Outcome expected;
    std::string lock;
    Words words = {};
    std::string text = {};  ///< of the configuration file
    std::optional<Child> holder = {};
    std::string contender = {};  ///< the path of a contender in place of a holder
    std::optional<Child> child = {};
  };

  static bool Holds(const Row& row) { return row.words.front() == "--hold"; }
  [[nodiscard]] bool Runs() const { return subcommand_ != "inspect" && subcommand_ != "release"; }

  /// Returns a new LOCK. All are below one znode, because other tests list all LOCKs next to their
  /// own.
  std::string NextLock() { return above_ + "/" + std::to_string(++locks_made_); }

  std::string Value(const std::string& word, Situation situation) {
    const bool no_server = situation == Situation::kNoServer;
    if (word == "OTHER") return NextLock();
    if (word == "FILE") return files_.Path("file-" + std::to_string(++files_made_));
    if (word == "CONFIG") return files_.Path("config");
    if (word == "CREDENTIALS") return files_.Path("credentials");
    if (word == "SERVERS") return no_server ? kNoServers : TestServers();
    if (word == "PATIENCE") return no_server ? "100ms" : "60s";
    return word;
  }

  void Start(Cell& cell) {
    const Row& row = cell.row;
    Words words = {Binary(), subcommand_};
    for (const std::string& word : row.words) words.push_back(Value(word, cell.situation));
    if (from_file_) {
      const std::string value = words.size() > 3 ? words[3] : "yes";
      const std::string file = Value("FILE", cell.situation);
      cell.text = words[2].substr(2) + " = " + value;
      (void)files_.Write(BaseName(file), cell.text + "\n");
      words = {Binary(), subcommand_, "--config", file};
    }
    if (cell.situation == Situation::kBusy || cell.situation == Situation::kFreed) Hold(cell);
    if (cell.situation == Situation::kBusy && !row.decides_to_wait) words.emplace_back("-n");
    if (cell.situation == Situation::kFreed && cell.contender.empty()) words.emplace_back("-v");
    words.push_back(cell.lock);
    if (row.has_command) words.insert(words.end(), {"--", "echo", "ran"});
    cell.words = words;

    const bool held = cell.situation == Situation::kHeldByShell;
    if (Holds(row) || held || std::find(words.begin(), words.end(), "NAME") != words.end()) {
      words.insert(words.begin(), {"sh", "-c", kInShell, "sh"});
    }
    if (cell.situation == Situation::kNested) {
      Words outer = Words{Binary(), "exclusive"} + row.holder + Words{cell.lock, "--"};
      words.insert(words.begin(), outer.begin(), outer.end());
    }
    ChildOptions options = Zklock({});
    options.argv = words;
    std::string holder;
    for (const std::string& word : row.holder) holder += word + " ";
    const bool with_auth = std::find(words.begin(), words.end(), "--auth-file") != words.end();
    options.also_environment = {
        "Z=" + Binary(),
        "AUTH=" + (with_auth ? Value("CREDENTIALS", cell.situation) : ""),
        "L=" + cell.lock,
        "HOLDER=" + holder,
        std::string("SHELL_HOLDS=") + (held ? "yes" : "no"),
        std::string("RELEASES=") + (Holds(row) && row.option != "--help" ? "yes" : "no")};
    if (cell.situation == Situation::kNoServer) {
      options.also_environment.push_back("ZKLOCK_SERVERS=" + kNoServers);
      options.also_environment.emplace_back("ZKLOCK_CONNECT_TIMEOUT=100ms");
    }
    cell.child = Child::Start(options);
  }

  /// Makes another program hold the LOCK.
  void Hold(Cell& cell) {
    if (cell.row.holder.empty() && Runs()) {
      cell.contender = tree_.Create(cell.lock + "/" + kZklockLock, ZnodeKind::kEphemeralSequential);
      return;
    }
    Words words = {"exclusive"};
    words.insert(words.end(), cell.row.holder.begin(), cell.row.holder.end());
    cell.holder = StartHolder(words, cell.lock);
  }

  /// Releases the LOCK of kFreed once zklock waits; interrupts a zklock that does not end by
  /// itself.
  void Free(Cell& cell) {
    INFO(Describe(cell));
    try {
      if (cell.expected.status == 128 + SIGINT) {
        cell.child->ReadUntil(cell.lock);
        cell.child->SignalGroup(SIGINT);
      }
      if (cell.situation != Situation::kFreed || cell.expected.status != 0) return;
      if (cell.row.option == "--help") return;
      if (cell.holder) {
        cell.child->ReadErrUntil("waiting for " + cell.lock);
        cell.holder->CloseInput();
      } else {
        tree_.WaitForChildren(cell.lock, 2);
        tree_.Delete(cell.contender);
      }
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }

  void CheckEnd(Cell& cell) {
    INFO(Describe(cell));
    const Outcome& expected = cell.expected;
    try {
      const Exit exit = cell.child->Wait();
      const std::string& out = cell.child->out();
      const std::string& err = cell.child->err();
      CAPTURE(out, err);
      CHECK(exit == Exited(expected.status));
      CHECK(out.empty() == expected.out.empty());
      CHECK_THAT(out, Catch::Contains(expected.out));
      // A keeper may still be exiting when the outer zklock looks for leftover processes.
      const bool keeper_above = cell.situation == Situation::kNested && Holds(cell.row);
      // The shell has created the LOCK without credentials.
      const bool is_open = cell.situation == Situation::kHeldByShell &&
                           (cell.row.option == "--auth-file" || cell.row.option == "--acl");
      // A message says that the LOCK does not exist: the empty graph does not show it.
      const bool is_graph = cell.row.option == "--dot";
      const bool talks = cell.row.talks || cell.situation == Situation::kFreed || keeper_above ||
                         is_open || is_graph;
      // A check prints the state that it has found on standard output.
      const bool is_state = expected.status > 0 && expected.status < 4;
      if ((expected.status == 0 && !talks) || is_state) CHECK(err.empty());
      const bool is_quiet = expected.status == 75 && (cell.row.option == "--quiet" ||
                                                      (cell.row.option == "--dry-run" && Runs()));
      if (expected.status != 0 && !is_state && !is_quiet && expected.status != 128 + SIGINT) {
        CHECK_THAT(err, Catch::Contains("zklock: "));
      }
      if (expected.status == 0 && cell.row.words.front() == "--reserve") Unreserve(cell);
      CheckLeft(cell);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
    cell.child.reset();
    cell.holder.reset();
  }

  /// Releases the reservation that the run has left.
  static void Unreserve(const Cell& cell) {
    RunZklock({"release", "--reserve", cell.row.words[1], cell.lock}, Exited(0));
  }

  /// Checks that no contender of this run is left in the LOCK.
  void CheckLeft(const Cell& cell) {
    if (!cell.row.holder.empty() || cell.holder) return;
    tree_.WaitForChildren(cell.lock, [&](std::vector<std::string> children) {
      std::erase(children, "last-run");
      std::erase(children, "last-start");
      std::erase(children, "locks");
      std::erase(children, "leases");
      std::erase(children, cell.contender.empty() ? "" : BaseName(cell.contender));
      return children.empty();
    });
  }

  static std::string Describe(const Cell& cell) {
    std::string text = Name(cell.situation) + ":";
    for (const std::string& word : cell.words) text += " " + word;
    return text + (cell.text.empty() ? "" : " (" + cell.text + ")");
  }

  const std::string kNoServers = "127.0.0.1:1";
  const std::string subcommand_;
  const bool from_file_;
  const TemporaryDirectory files_;
  const std::string above_ = NewLock("options");
  int files_made_ = 0;
  int locks_made_ = 0;
  Tree tree_;
};

/// Returns the rows of options that a configuration file can set. There, a refused value is status
/// 78.
Rows FileRows(Rows rows) {
  const auto& names = cli::ConfigurableNames();
  std::erase_if(rows, [&](const Row& row) {
    return row.is_default_in_file || row.words.front() != row.option ||
           !row.option.starts_with("--") ||
           std::find(names.begin(), names.end(), row.option.substr(2)) == names.end() ||
           row.words.size() > 2;
  });
  for (Row& row : rows) {
    if (row.outcomes.empty() || row.outcomes.begin()->second.status != 64) continue;
    for (auto& [situation, outcome] : row.outcomes) outcome.status = 78;
  }
  return rows;
}

/// Checks that the options in the table are exactly those with rows, and that each is tried in all
/// `situations`.
void CheckComplete(const std::string& subcommand, const Rows& rows,
                   const std::vector<Situation>& situations) {
  std::map<std::string, std::set<Situation>> tried;
  for (const Row& row : rows) {
    for (const auto& [situation, outcome] : row.outcomes) tried[row.option].insert(situation);
  }
  std::set<std::string> options;
  for (const auto* option : cli::OptionsOf(cli::FindSubcommand(subcommand)->bit)) {
    options.insert(option->Name());
  }
  CHECK(options.size() > 10);
  for (const std::string& option : options) {
    for (const Situation situation : situations) {
      CAPTURE(option, Name(situation));
      CHECK(tried[option].count(situation) == 1);
    }
  }
  for (const auto& [option, in] : tried) {
    CAPTURE(option);
    CHECK(options.count(option) == 1);
  }
}

}  // namespace

using enum Situation;

TEST_CASE("each option of a run works in each situation", "[slow]") {
  const std::string subcommand = GENERATE(as<std::string>{}, "exclusive", "read", "write", "try");
  Table(subcommand).Check(RunRows(subcommand));
}

TEST_CASE("each option of a run works in each situation with --hold", "[slow]") {
  const std::string subcommand = GENERATE(as<std::string>{}, "exclusive", "read", "write", "try");
  Table(subcommand).Check(HoldRows(subcommand));
}

TEST_CASE("each option of a run works in each situation from a configuration file") {
  const std::string subcommand = GENERATE(as<std::string>{}, "exclusive", "read", "try");
  Table(subcommand, true).Check(FileRows(RunRows(subcommand)));
}

TEST_CASE("each option of release works in each situation") {
  Table("release").Check(ReleaseRows());
}

TEST_CASE("each option of inspect works in each situation") {
  Table("inspect").Check(InspectRows());
}

TEST_CASE("each option has a row in each situation") {
  for (const std::string subcommand : {"exclusive", "read", "write", "try"}) {
    std::vector<Situation> situations = {kFree, kBusy, kNested, kHeldByShell, kNoServer};
    Rows rows = RunRows(subcommand);
    for (const Row& row : HoldRows(subcommand)) {
      if (row.option == "--hold") rows.push_back(row);
    }
    CheckComplete(subcommand, rows, situations);
  }
  CheckComplete("release", ReleaseRows(), {kFree, kBusy, kHeldByShell, kNoServer});
  CheckComplete("inspect", InspectRows(), {kFree, kBusy, kNested, kHeldByShell, kNoServer});
}

}  // namespace zklock::test
