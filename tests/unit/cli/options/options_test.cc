#include "cli/options/command_line.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "cli/options/option_table.h"
#include "support/temporary.h"

namespace zklock::cli {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

/// Sets an environment variable for the lifetime of this object.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

ParsedCommandLine Parse(const Words& words) {
  // The test's environment must not influence the result.
  for (const char* name : {"ZKLOCK_CONNECT_TIMEOUT", "ZKLOCK_SESSION_TIMEOUT"}) unsetenv(name);
  const Variable config("ZKLOCK_CONFIG", "/dev/null");
  std::vector<const char*> argv = {"zklock"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

RunOptions ParseRun(const Words& words) { return std::get<RunOptions>(Parse(words)); }

std::string ErrorOf(const Words& words) {
  try {
    Parse(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("The words after -- are the command, unchanged") {
  const RunOptions options =
      ParseRun({"exclusive", "/jobs/backup", "--", "cmd", "--wait", "--", "-q", "", "a b"});
  CHECK(options.command == Words{"cmd", "--wait", "--", "-q", "", "a b"});
  CHECK(options.locks == std::vector<WantedLock>{{"/jobs/backup", protocol::Mode::kExclusive}});
  CHECK(options.verbosity == Verbosity::kNormal);
}

TEST_CASE("Several LOCKs are sorted by path, without duplicates, each with its mode") {
  using protocol::Mode;
  using Wanted = std::vector<WantedLock>;
  CHECK(
      ParseRun({"exclusive", "/b", "/a", "c", "/b", "--", "x"}).locks ==
      Wanted{{"/a", Mode::kExclusive}, {"/b", Mode::kExclusive}, {"/zklock/c", Mode::kExclusive}});
  CHECK(ParseRun({"exclusive", "--also-read", "/c", "/b", "--also-write", "/a", "--also-read=/d",
                  "--", "x"})
            .locks == Wanted{{"/a", Mode::kWrite},
                             {"/b", Mode::kExclusive},
                             {"/c", Mode::kRead},
                             {"/d", Mode::kRead}});
  CHECK(ParseRun({"read", "--also-write", "/a", "--", "x"}).locks == Wanted{{"/a", Mode::kWrite}});
  CHECK_THAT(ErrorOf({"exclusive", "/a", "--also-read", "/a", "--", "x"}),
             Catch::Contains("'/a' is named twice, in different modes"));
  CHECK_THAT(ErrorOf({"exclusive", "/a", "--also-read", "/b/", "--", "x"}),
             Catch::Contains("LOCK '/b/'"));
  CHECK_THAT(ErrorOf({"inspect", "/a", "/b"}), Catch::Contains("inspect takes one at a time"));
}

TEST_CASE("A relative LOCK with several components is refused unless a root is given") {
  const std::string what = "LOCK 'jobs/y' is ambiguous (/jobs/y or /zklock/jobs/y): ";
  CHECK_THAT(ErrorOf({"exclusive", "jobs/y", "--", "x"}), Catch::StartsWith(what));
  CHECK_THAT(ErrorOf({"exclusive", "/a", "--also-read", "jobs/y", "--", "x"}),
             Catch::StartsWith(what));
  CHECK_THAT(ErrorOf({"inspect", "jobs/y"}), Catch::StartsWith(what));
  CHECK_THAT(ErrorOf({"inspect", "--check", "/a", "jobs/y"}), Catch::StartsWith(what));
  CHECK_THAT(ErrorOf({"release", "jobs/y"}), Catch::StartsWith(what));
  CHECK(ParseRun({"exclusive", "--root", "/zklock", "jobs/y", "--", "x"}).locks.front().path ==
        "/zklock/jobs/y");
}

TEST_CASE("A LOCK may have a name that zklock uses below a LOCK, if that LOCK remains usable") {
  for (const char* lock : {"/last-run", "/a-lock-0000000001", "/l/lock", "/l/locks", "/l/leases/m",
                           "/l/pipeline-1234567890", "/l/last-run-2"}) {
    CAPTURE(lock);
    CHECK(ParseRun({"exclusive", lock, "--", "c"}).locks.front().path == lock);
  }
  CHECK(ErrorOf({"inspect", "/l/last-run"}).empty());
}

TEST_CASE("-c runs a line in the shell") {
  CHECK(ParseRun({"exclusive", "-c", "echo a | wc", "/l"}).command ==
        Words{"/bin/sh", "-c", "echo a | wc"});
}

TEST_CASE("A reservation needs no command") {
  const RunOptions options =
      ParseRun({"try", "--reserve", "ci:4711@a-b_c.d", "--for", "400d", "--reason", "x y", "/l"});
  CHECK(options.reserve == "ci:4711@a-b_c.d");
  CHECK(options.reserve_for == std::chrono::days(400));
  CHECK(options.reserve_reason == "x y");
  CHECK(options.command.empty());
  CHECK_FALSE(options.hold);
  CHECK(ParseRun({"read", "--reserve", "x", "/l", "--", "c"}).command == Words{"c"});
  CHECK(ParseRun({"write", "--reserve", std::string(64, 'x'), "-c", "c", "/l"}).command.size() ==
        3);
  CHECK(ParseRun({"exclusive", "/l", "--", "c"}).reserve.empty());
}

TEST_CASE("release --reserve accepts several LOCKs, and drops duplicates") {
  const auto options =
      std::get<ReleaseOptions>(Parse({"release", "--reserve", "x", "/m", "l", "/m"}));
  CHECK(options.target == ReleaseOptions::Target::kReservation);
  CHECK(options.reserve == "x");
  CHECK(options.locks == Words{"/m", "/zklock/l"});
}

TEST_CASE("The subcommand determines the mode") {
  using protocol::Mode;
  CHECK(ParseRun({"exclusive", "/l", "--", "c"}).locks.front().mode == Mode::kExclusive);
  CHECK(ParseRun({"read", "/l", "--", "c"}).locks.front().mode == Mode::kRead);
  CHECK(ParseRun({"write", "/l", "--", "c"}).locks.front().mode == Mode::kWrite);
  const RunOptions plain = ParseRun({"try", "/l", "--", "c"});
  CHECK(plain.locks.front().mode == Mode::kExclusive);
  CHECK(plain.try_only);
  CHECK(ParseRun({"try", "--read", "/l", "--", "c"}).locks.front().mode == Mode::kRead);
  CHECK(ParseRun({"try", "--write", "/l", "--", "c"}).locks.front().mode == Mode::kWrite);
}

TEST_CASE("Each of three options disables waiting") {
  CHECK(ParseRun({"exclusive", "-n", "/l", "--", "c"}).try_only);
  CHECK(ParseRun({"exclusive", "--nonblock", "/l", "--", "c"}).try_only);
  CHECK(ParseRun({"exclusive", "-w", "0", "/l", "--", "c"}).try_only);
  CHECK_FALSE(ParseRun({"exclusive", "-w", "0", "/l", "--", "c"}).wait);
  CHECK_FALSE(ParseRun({"exclusive", "-w", "1", "/l", "--", "c"}).try_only);
}

TEST_CASE("The defaults are those in the manual pages") {
  const RunOptions options = ParseRun({"exclusive", "--servers", "h:1", "/l", "--", "c"});
  CHECK_FALSE(options.wait);
  CHECK(options.conflict_exit_code == 75);
  CHECK(options.server.connect_timeout == 15s);
  CHECK(options.server.session_timeout == 30s);
  CHECK(options.kill_after == 5s);
  CHECK(options.stop_signal == SIGTERM);
  CHECK_FALSE(options.publish_command);
}

TEST_CASE("Options are accepted anywhere before --, and the last occurrence counts") {
  const RunOptions options = ParseRun({"write",     "-w",
                                       "1m",        "backup",
                                       "--root=/r", "-E",
                                       "9",         "-E",
                                       "0",         "-k",
                                       "500ms",     "--stop-signal",
                                       "int",       "-l",
                                       "a label",   "--publish-command",
                                       "-v",        "--session-timeout",
                                       "10s",       "--connect-timeout",
                                       "2",         "-z",
                                       "[::1]:9/c", "--",
                                       "c"});
  CHECK(options.locks.front().path == "/r/backup");
  CHECK(options.wait == Duration(1min));
  CHECK(options.conflict_exit_code == 0);
  CHECK(options.kill_after == 500ms);
  CHECK(options.stop_signal == SIGINT);
  CHECK(options.label == "a label");
  CHECK(options.publish_command);
  CHECK(options.verbosity == Verbosity::kVerbose);
  CHECK(options.server.session_timeout == 10s);
  CHECK(options.server.connect_timeout == 2s);
  CHECK(options.server.servers.chroot == "/c");
}

TEST_CASE("Letters can be combined, and the value of an option can be any word") {
  const RunOptions letters = ParseRun({"exclusive", "-vk7s", "-nlx", "/l", "--", "c"});
  CHECK(letters.verbosity == Verbosity::kVerbose);
  CHECK(letters.kill_after == 7s);
  CHECK(letters.try_only);
  CHECK(letters.label == "x");
  for (const char* const word :
       {"", "-q", "--quiet", "--quiet=7", "--root=", "--root=/r", "=", "[a,b]"}) {
    CHECK(ParseRun({"exclusive", "/l", "--label", word, "--", "c"}).label == word);
    CHECK(ParseRun({"exclusive", "/l", "-l", word, "--", "c"}).label == word);
    CHECK(ParseRun({"exclusive", "/l", "--label=" + std::string(word), "--", "c"}).label == word);
  }
}

TEST_CASE("Variables set options, and arguments override variables") {
  const Variable servers("ZKLOCK_SERVERS", "zk1:2000");
  const Variable root("ZKLOCK_ROOT", "/from/env");
  const Variable label("ZKLOCK_LABEL", "from env");
  const RunOptions from_environment = ParseRun({"exclusive", "l", "--", "c"});
  CHECK(from_environment.server.servers.servers.front().host == "zk1");
  CHECK(from_environment.locks.front().path == "/from/env/l");
  CHECK(from_environment.label == "from env");
  const RunOptions from_arguments =
      ParseRun({"exclusive", "-z", "zk2:1", "--root", "/", "-l", "x", "l", "--", "c"});
  CHECK(from_arguments.server.servers.servers.front().host == "zk2");
  CHECK(from_arguments.locks.front().path == "/l");
  CHECK(from_arguments.label == "x");
}

TEST_CASE("An empty variable counts as unset, unless it determines which lock is meant") {
  {
    const Variable label("ZKLOCK_LABEL", "");
    CHECK(ParseRun({"exclusive", "/l", "--", "c"}).label.empty());
    const Variable patience("ZKLOCK_CONNECT_TIMEOUT", "");
    CHECK(ParseRun({"exclusive", "/l", "--", "c"}).server.connect_timeout == 15s);
  }
  const Variable servers("ZKLOCK_SERVERS", "");
  CHECK_THAT(ErrorOf({"exclusive", "/l", "--", "c"}), Catch::Contains("(from $ZKLOCK_SERVERS)"));
}

TEST_CASE("Signals are named as kill(1) names them") {
  const auto signal = [](const std::string& name) {
    return ParseRun({"exclusive", "--stop-signal", name, "/l", "--", "c"}).stop_signal;
  };
  CHECK(signal("TERM") == SIGTERM);
  CHECK(signal("SIGUSR1") == SIGUSR1);
  CHECK(signal("hup") == SIGHUP);
  CHECK(signal("9") == SIGKILL);
}

TEST_CASE("The long names of flock are accepted too") {
  CHECK(ParseRun({"exclusive", "--timeout", "5", "/l", "--", "c"}).wait == Duration(5s));
  CHECK(ParseRun({"read", "--timeout=5", "/l", "--", "c"}).wait == Duration(5s));
  CHECK(ParseRun({"exclusive", "--nb", "/l", "--", "c"}).try_only);
  CHECK(ParseRun({"exclusive", "--verbose", "/l", "--", "c"}).verbosity == Verbosity::kVerbose);
  CHECK_THAT(ErrorOf({"exclusive", "--nb", "--timeout", "5", "/l", "--", "c"}),
             Catch::Contains("--nonblock and --wait cannot be used together"));
  CHECK_THAT(std::get<Text>(Parse({"exclusive", "--help"})).text,
             !Catch::Contains("--timeout") && !Catch::Contains("--nb"));
}

TEST_CASE("Several LOCKs need no -- if no command follows them") {
  for (const Words& words : std::vector<Words>{{"exclusive", "/a", "b", "-c", "x"},
                                               {"exclusive", "/a", "/b", "-cx"},
                                               {"exclusive", "-qcx", "/a", "b"},
                                               {"exclusive", "-w5", "/a", "b", "--hold"},
                                               {"exclusive", "/a", "b", "--reserve=id"}}) {
    CAPTURE(words);
    CHECK(ParseRun(words).locks.size() == 2);
  }
}

TEST_CASE("A usage error names the mistake and the word") {
  struct Case {
    Words words;
    std::string part;
  };
  const std::vector<Case> cases = {
      {{}, "no subcommand"},
      {{"exlusive"}, "unknown subcommand 'exlusive'; did you mean 'exclusive'?"},
      {{"frob"}, "unknown subcommand 'frob'; expected exclusive, read, write, try, inspect or"},
      {{"lock", "/l"}, "unknown subcommand 'lock'; did you mean 'exclusive'?"},
      {{"/l", "c"}, "unknown subcommand '/l'; did you mean 'zklock exclusive /l'?"},
      {{"--servers", "h:1", "exclusive", "/l", "--", "c"},
       "'--servers' belongs after the subcommand: zklock exclusive --servers ..."},
      {{"--servers=h:1", "read", "/l"}, "'--servers' belongs after the subcommand: zklock read"},
      {{"-z", "h:1", "/l", "c"}, "'-z' belongs after the subcommand: zklock SUBCOMMAND -z ..."},
      {{"-n", "exclusive", "/l", "--", "c"}, "'-n' belongs after the subcommand: zklock exclusive"},
      {{"-n", "/l", "c"}, "unknown option '-n'; did you mean 'zklock try'?"},
      {{"-s", "/l", "c"}, "unknown option '-s'; did you mean 'zklock read'?"},
      {{"exclusive", "-s", "/l", "--", "c"}, "unknown option '-s'; did you mean 'zklock read'?"},
      {{"exclusive", "-x", "/l", "--", "c"}, "unknown option '-x'; exclusive does that by default"},
      {{"--frob"}, "unknown option '--frob'"},
      {{"--hepl"}, "unknown option '--hepl'; did you mean '--help'?"},
      {{"exclusive", "--", "c"}, "no LOCK"},
      {{"exclusive", "/l"}, "no command"},
      {{"exclusive", "/l", "--"}, "no command"},
      {{"exclusive", "/l", "c"}, "no '--' before the command 'c'"},
      {{"exclusive", "/jobs/x", "ls", "-l"}, "no '--' before the command 'ls'"},
      {{"exclusive", "-qw", "3", "/l", "--label=x", "ls", "--frob"}, "before the command 'ls'"},
      {{"exclusive", "/l", "/bin/ls", "-l"}, "no command given"},
      {{"exclusive", "/l", "--frob"}, "unknown option '--frob'"},
      {{"inspect", "/l", "/m"}, "more than one LOCK"},
      {{"exclusive", "-c", "x", "/l", "--", "c"}, "cannot be used together"},
      {{"exclusive", "-c", "x", "/l", "--"}, "-c and a command after '--' cannot be used together"},
      {{"exclusive", "-c", "x"}, "no LOCK given"},
      {{"exclusive", "--frob", "/l", "--", "c"}, "unknown option '--frob'; options of the command"},
      {{"exclusive", "--wiat", "5", "/l", "--", "c"},
       "unknown option '--wiat'; did you mean '--wait'?"},
      {{"exclusive", "--wiat=5", "/l", "--", "c"},
       "unknown option '--wiat'; did you mean '--wait'?"},
      {{"exclusive", "--wai=1", "/l", "--", "c"}, "unknown option '--wai'"},
      {{"inspect", "--jsno", "/l"}, "unknown option '--jsno'; did you mean '--json'?"},
      {{"exclusive", "--timeot", "5", "/l", "--", "c"}, "did you mean '--timeout'?"},
      {{"exclusive", "--quiet=7", "/l", "--", "c"}, "--quiet takes no value, but was given '7'"},
      {{"exclusive", "--hold=maybe", "/l"}, "--hold takes no value, but was given 'maybe'"},
      {{"inspect", "--history=2", "/l"}, "--history takes no value, but was given '2'"},
      {{"exclusive", "--json", "/l", "--", "c"}, "'--json' is not an option of exclusive"},
      {{"exclusive", "/l", "--wait", "--", "c"}, "requires a value"},
      {{"exclusive", "-w", "soon", "/l", "--", "c"}, "'soon'"},
      {{"exclusive", "-w", "-1", "/l", "--", "c"}, "'-1'"},
      {{"exclusive", "-w", "", "/l", "--", "c"}, "invalid duration ''"},
      {{"exclusive", "-n", "-w", "1", "/l", "--", "c"}, "cannot be used together"},
      {{"try", "--wait", "1", "/l", "--", "c"}, "'--wait' is not an option of try"},
      {{"exclusive", "--also-read", "--", "c"}, "--also-read requires a value"},
      {{"exclusive", "--permits", "0", "/l", "--", "c"},
       "--permits: invalid number '0'; expected 1 to 2147483647"},
      {{"exclusive", "--permits", "99999999999", "/l", "--", "c"},
       "--permits: invalid number '99999999999'; expected 1 to 2147483647"},
      {{"exclusive", "--permits", "two", "/l", "--", "c"},
       "--permits: invalid number 'two'; expected 1 to 2147483647"},
      {{"exclusive", "--permits", "2", "/l", "/m", "--", "c"},
       "--permits takes one LOCK; use another run for the others"},
      {{"try", "--permits", "2", "--read", "/l", "--", "c"},
       "--permits has neither readers nor writers: use exclusive or try"},
      {{"try", "--permits", "2", "--dialect", "kazoo", "/l", "--", "c"},
       "--permits works only with --dialect curator"},
      {{"read", "--permits", "2", "/l", "--", "c"},
       "'--permits' is not an option of read, but of exclusive, try"},
      {{"exclusive", "--permits", "2", "--take", "3", "/l", "--", "c"},
       "cannot take 3 of --permits 2"},
      {{"try", "--permits", "2", "--take", "0", "/l", "--", "c"},
       "--take: invalid number '0'; expected 1 to 100"},
      {{"try", "--permits", "200", "--take", "101", "/l", "--", "c"},
       "--take: invalid number '101'; expected 1 to 100"},
      {{"exclusive", "--max-queue", "-1", "/l", "--", "c"},
       "--max-queue: invalid number '-1'; expected 0 to 2147483647"},
      {{"exclusive", "-v=1", "/l", "--", "c"}, "--verbose takes no value, but was given '1'"},
      {{"exclusive", "-nv=1", "/l", "--", "c"}, "--verbose takes no value, but was given '1'"},
      {{"exclusive", "-l=", "-q=", "/l", "--", "c"}, "--quiet takes no value, but was given ''"},
      {{"exclusive", "-v-root=/r", "/l", "--", "c"},
       "--verbose takes no value, but was given '-root=/r'"},
      {{"exclusive", "-v-hold", "/l"}, "--verbose takes no value, but was given '-hold'"},
      {{"exclusive", "--wait=1", "-q=1", "/l", "--", "c"},
       "--quiet takes no value, but was given '1'"},
      {{"exclusive", "-E", "256", "/l", "--", "c"}, "'256'"},
      {{"exclusive", "-E", "-1", "/l", "--", "c"}, "'-1'"},
      {{"exclusive", "-E", "1x", "/l", "--", "c"}, "'1x'"},
      {{"exclusive", "-E", "", "/l", "--", "c"}, "--conflict-exit-code"},
      {{"exclusive", "-E", " 1", "/l", "--", "c"}, "' 1'"},
      {{"exclusive", "-E", "1.5", "/l", "--", "c"}, "'1.5'"},
      {{"exclusive", "-E", "99999999999", "/l", "--", "c"}, "'99999999999'"},
      {{"exclusive", "--stop-signal", "BOO", "/l", "--", "c"}, "'BOO'"},
      {{"exclusive", "--stop-signal", "0", "/l", "--", "c"}, "--stop-signal: invalid signal '0'"},
      {{"exclusive", "--stop-signal", "", "/l", "--", "c"}, "--stop-signal: invalid signal ''"},
      {{"exclusive", "--progress", "often", "/l", "--", "c"}, "--progress: invalid value 'often'"},
      {{"write", "--kill-after", "1x", "/l", "--", "c"}, "--kill-after: invalid duration '1x'"},
      {{"write", "--connect-timeout", "-1", "/l", "--", "c"},
       "--connect-timeout: invalid duration"},
      {{"write", "--session-timeout", "0", "/l", "--", "c"}, "--session-timeout must be more than"},
      {{"exclusive", "--connect-timeout", "0", "/l", "--", "c"}, "more than 0"},
      {{"exclusive", "--session-timeout", "12d1ms", "/l", "--", "c"},
       "too long; the maximum is 12d"},
      {{"exclusive", "-z", "h:0", "/l", "--", "c"}, "--servers"},
      // An empty value counts as the value: the next argument is not used instead.
      {{"exclusive", "--servers=", "/l", "--", "c"}, "--servers '': it names no server"},
      {{"exclusive", "--wait=", "1s", "/l", "--", "c"}, "--wait: invalid duration ''"},
      {{"exclusive", "--nonblock=", "/l", "--", "c"},
       "--nonblock takes no value, but was given ''"},
      {{"exclusive", "-z", "h:1/zookeeper", "/l", "--", "c"}, "chroot"},
      {{"exclusive", "--root", "r", "/l", "--", "c"}, "--root"},
      {{"exclusive", "/l/", "--", "c"}, "'/l/'"},
      {{"exclusive", "/l ", "--", "c"}, "LOCK '/l ' begins or ends with a blank"},
      {{"exclusive", " /l", "--", "c"}, "begins or ends with a blank"},
      {{"exclusive", "/l", "--", ""}, "no command given"},
      {{"try", "/l/last-run", "--", "c"},
       "is or is below '/l/last-run', which is a record in the LOCK /l: "},
      {{"write", "/l/last-start/m", "--", "c"}, "which is a record in the LOCK /l: "},
      {{"exclusive", "last-run", "--", "c"}, "which is a record in the LOCK /zklock: "},
      {{"try", "-z", "h:1/l", "/last-start", "--", "c"},
       "LOCK '/last-start' is or is below '/l/last-start', which is a record in the LOCK /l: "},
      {{"try", "-z", "h:1/l/a-lock-0000000001", "/m", "--", "c"},
       "LOCK '/m' is or is below '/l/a-lock-0000000001', which is a contender in the LOCK /l: "},
      {{"read", "/m", "--also-read", "/l/a-lock-0000000001/b", "--", "c"},
       "is or is below '/l/a-lock-0000000001', which is a contender in the LOCK /l: "},
      {{"exclusive", "/l/_c_x-lease-0000000001", "--", "c"}, "a contender in the LOCK /l: "},
      {{"exclusive", "/", "--", "c"}, "LOCK '/'"},
      {{"exclusive", "-q", "-v", "/l", "--", "c"}, "cannot be used together"},
      {{"exclusive", "--reserve", "", "/l"}, "invalid ID ''"},
      {{"exclusive", "--reserve", "a b", "/l"}, "invalid ID 'a b'"},
      {{"exclusive", "--reserve", "a/b", "/l"}, "invalid ID 'a/b'"},
      {{"exclusive", "--reserve", std::string(65, 'x'), "/l"}, "expected 1 to 64"},
      {{"exclusive", "--reserve", "x", "--for", "0", "/l"}, "--for must be more than 0"},
      {{"exclusive", "--reserve", "x", "--for", "401d", "/l"}, "the maximum is 400d"},
      {{"exclusive", "--reserve", "x", "/l", "--"}, "no command given"},
      {{"write", "--once-per", "1h", "/l", "--also-read", "/m", "--", "c"},
       "--once-per does not work with read"},
      {{"read", "--once-per", "1h", "/l", "--", "c"}, "'--once-per' is not an option of read"},
      {{"exclusive", "--once-per", "0", "/l", "--", "c"}, "more than 0"},
      {{"exclusive", "--min-interval", "0", "/l", "--", "c"}, "--min-interval must be more than 0"},
      {{"exclusive", "--min-interval", "soon", "/l", "--", "c"},
       "--min-interval: invalid duration 'soon' (examples: 90, 1.5, 500ms, 1h30m)"},
      {{"exclusive", "--once-per", "soon", "/l", "--", "c"},
       "--once-per: invalid duration 'soon' (examples: 90, 1.5, 500ms, 1h30m)"},
      {{"read", "--min-interval", "1h", "/l", "--", "c"},
       "'--min-interval' is not an option of read, but of exclusive, write, try"},
      {{"try", "--read", "--once-per", "1h", "/l", "--", "c"},
       "--once-per does not work with read: use exclusive, write or try"},
      {{"try", "--read", "--min-interval", "1h", "/l", "--", "c"},
       "--min-interval does not work with read: use exclusive, write or try"},
      {{"exclusive", "--permits", "2", "--min-interval", "1h", "/l", "--", "c"},
       "--permits and --min-interval cannot be used together"},
      {{"exclusive", "--reserve", "x", "--min-interval", "1h", "/l"},
       "--min-interval and --reserve cannot be used together"},
      {{"exclusive", "--reserve", "x", "--once-per", "1h", "/l"},
       "--once-per and --reserve cannot be used together"},
      {{"exclusive", "--acl", "all", "/l", "--", "c"},
       "--acl: invalid value 'all'; expected one of: open, creator"},
      {{"exclusive", "--acl", "", "/l", "--", "c"},
       "--acl: invalid value ''; expected one of: open, creator"},
      {{"exclusive", "--reserve", "x", "--on-lost", "stop", "/l", "--", "c"}, "no lease"},
      {{"exclusive", "--reserve", "x", "--dialect", "simple", "/l"}, "does not work with"},
      {{"exclusive", "--reserve", "x", "--stop-signal", "INT", "/l"}, "none is given"},
      {{"exclusive", "--reserve", "x", "--permits", "2", "/l", "/m"}, "--permits takes one LOCK"},
      {{"exclusive", "--history", "0", "/l", "--", "c"}, "expected 1 to 100"},
      {{"exclusive", "--history", "101", "/l", "--", "c"}, "expected 1 to 100"},
      {{"try", "--read", "--history", "8", "--reserve", "x", "/l"}, "does not work with read"},
      {{"read", "--history", "8", "/l", "--", "c"}, "'--history' is not an option of read"},
      {{"exclusive", "--history", "8", "--dialect", "simple", "/l", "--", "c"}, "simple"},
      {{"inspect", "--quiet", "--watch", "/l"}, "--quiet and --watch cannot be used together"},
      {{"inspect", "--quiet", "--dot", "/l"}, "--quiet and --dot cannot be used together"},
      {{"inspect", "--history"}, "no LOCK given"},
      {{"inspect", "--history", "/"}, "LOCK '/'"},
      {{"release", "/l", "--reserve", "a b"}, "invalid ID 'a b'"},
      {{"release", "/l", "/m", "--all"}, "release takes one at a time"},
      {{"inspect", "/l", "--", "c"}, "runs no command"},
      {{"exclusive", "--hold", "/l", "--", "c"}, "--hold"},
      {{"exclusive", "--hold", "--on-lost-signal", "BOO", "/l"}, "'BOO'"},
      {{"release", "/l", "--contender", "a/b", "--force"}, "'a/b'"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.words);
    CHECK_THAT(ErrorOf(one.words), Catch::Contains(one.part));
  }
}

// The rules are written out here, so that one missing from the table is noticed.
constexpr const char* kRequiring =
    R"(exclusive --tls-verify ca|read --sasl-service zookeeper|exclusive --owner-pid 1|try --for 1h|
write --reason r|try --reason r|try --take 2|inspect --max-held 1h|inspect --output f|
inspect --runs 2|release --all --any|release --force|release --wait-released|release --reason r)";
constexpr const char* kExcluding =
    R"(try --read --write|exclusive --events f --hold|exclusive --resume x --wait 1|
try --resume x --reserve x|read --resume x --for 1h|read --reserve x --hold|
try --resume x --on-lost warn|write --resume x --once-per 1h|read --any --preempt all|
write --any --also-read /m|try --any --reserve x|try --any --permits 2|write --any --min-interval 1h|
try --any --once-per 1h|exclusive --permits 2 --supersede x|try --permits 2 --once-per 1h|
inspect --json --dot|inspect --dot --watch|inspect --check --json|inspect --prometheus --mine|
inspect --history --watch|inspect --servers-report --mine|inspect --mine --json|
inspect --quiet --json|release --holders --all|release --host h --position 1|
release --position 1 --yes|release --reserve x --force|release --holders --wait-released --force)";

TEST_CASE("Each rule about two options is enforced") {
  const auto [part, all] = GENERATE(table<std::string, std::string>(
      {{" requires ", kRequiring}, {" cannot be used together", kExcluding}}));
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line, '|');) {
    CAPTURE(line);
    std::istringstream text(line + " /l");
    Words words(std::istream_iterator<std::string>(text), {});
    const bool runs = words[0] != "inspect" && words[0] != "release" && !line.ends_with("--hold");
    if (runs) words.insert(words.end(), {"--", "c"});
    CHECK_THAT(ErrorOf(words), Catch::Contains(part));
  }
}

TEST_CASE("Options that exclude or require each other are refused in each subcommand") {
  std::size_t refused = 0;
  const auto error_of = [&](const SubcommandSpec& subcommand,
                            std::initializer_list<std::string_view> options) {
    Words words = {std::string(subcommand.name)};
    bool holds = false;
    for (const std::string_view name : options) {
      const auto rows = OptionsOf(subcommand.bit);
      const auto row = std::find_if(rows.begin(), rows.end(),
                                    [&](const OptionSpec* one) { return one->Name() == name; });
      CAPTURE(subcommand.name, name);
      REQUIRE(row != rows.end());
      words.emplace_back(name);
      const auto choices = (*row)->Choices();
      if (!(*row)->IsFlag()) words.push_back(choices.empty() ? "1" : choices.front());
      holds = holds || name == "--hold";
    }
    words.emplace_back("/l");
    if (subcommand.RunsCommand() && !holds) words.insert(words.end(), {"--", "c"});
    ++refused;
    try {
      return ErrorOf(words);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());  // no rule forbids the options, but a file is missing
    }
  };
  for (const OptionRule& rule : OptionRules()) {
    for (const SubcommandSpec& subcommand : SubcommandTable()) {
      if ((subcommand.bit & rule.subcommands) == 0) continue;
      for (const std::string_view option : NamesIn(rule.options)) {
        if (rule.kind == OptionRule::Kind::kRequires) {
          CHECK_THAT(error_of(subcommand, {option}),
                     Catch::StartsWith(std::string(option) + " requires "));
          for (const std::string_view other : NamesIn(rule.others)) {
            CHECK(error_of(subcommand, {option, other}).find(" requires ") == std::string::npos);
          }
          continue;
        }
        for (const std::string_view other : NamesIn(rule.others)) {
          if (other == option) continue;
          const std::string error = error_of(subcommand, {option, other});
          CHECK_THAT(error, Catch::Contains(std::string(option)) &&
                                Catch::Contains(std::string(other)) &&
                                Catch::Contains(" cannot be used together"));
        }
      }
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("A configuration file can turn off an option that another one excludes") {
  test::TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "supersede = no\n");
  CHECK(ParseRun({"exclusive", "--config", file, "--permits", "2", "/l", "--", "c"}).permits == 2);
}

TEST_CASE("--servers-report takes no LOCK, and can be combined with --json and -q") {
  CHECK(std::get<InspectOptions>(Parse({"inspect", "--servers-report"})).servers_report);
  CHECK(std::get<InspectOptions>(Parse({"inspect", "--servers-report", "--json"})).form ==
        InspectOptions::Form::kJson);
  CHECK(std::get<InspectOptions>(Parse({"inspect", "--servers-report", "-q"})).by_status);
  CHECK_THAT(ErrorOf({"inspect", "--servers-report", "/l"}), Catch::Contains("takes no LOCK"));
  CHECK_THAT(ErrorOf({"inspect", "--server-report"}), Catch::Contains("'--servers-report'"));
}

TEST_CASE("inspect shows the root without a LOCK, and everything with /") {
  CHECK(std::get<InspectOptions>(Parse({"inspect"})).path == "/zklock");
  CHECK(std::get<InspectOptions>(Parse({"inspect", "/"})).path == "/");
  CHECK(std::get<InspectOptions>(Parse({"inspect", "x"})).path == "/zklock/x");
}

TEST_CASE("--help and --version print text, whatever else is on the command line") {
  for (const Words& words : std::vector<Words>{
           {"--help"}, {"-h"}, {"--version"}, {"exclusive", "--help"}, {"try", "-h", "--frob"}}) {
    CAPTURE(words);
    CHECK_FALSE(std::get<Text>(Parse(words)).text.empty());
  }
}

TEST_CASE("-h shows the options that most runs need, --help all, each under a heading") {
  const auto rows = [](const Words& words) {
    const std::string text = std::get<Text>(Parse(words)).text;
    const std::string options = text.substr(0, text.find("LOCK is a znode path"));
    std::size_t count = 0;
    for (std::size_t at = options.find("\n  -"); at != std::string::npos;
         at = options.find("\n  -", at + 1)) {
      ++count;
    }
    return count;
  };
  for (const char* name : {"exclusive", "read", "write", "try"}) {
    CAPTURE(name);
    const std::size_t few = rows({name, "-h"});
    CHECK(few >= 12);
    CHECK(few <= 23);
    CHECK_THAT(std::get<Text>(Parse({name, "-h"})).text,
               Catch::Contains("\nWaiting:\n") || Catch::Contains("\nSharing:\n"));
    CHECK(rows({name, "--help"}) == OptionsOf(FindSubcommand(name)->bit).size());
    CHECK(rows({name, "-h", "--help"}) == rows({name, "--help"}));
  }
  for (const char* name : {"inspect", "release"}) {
    CAPTURE(name);
    CHECK(rows({name, "-h"}) == OptionsOf(FindSubcommand(name)->bit).size());
  }
}

TEST_CASE("Help lists no option that the subcommand always refuses") {
  const auto help = [](const char* name) { return std::get<Text>(Parse({name, "--help"})).text; };
  for (const char* option : {"--permits", "--min-interval", "--once-per", "--history"}) {
    CAPTURE(option);
    CHECK(help("read").find(option) == std::string::npos);
    CHECK_THAT(help("try"), Catch::Contains(option));
  }
  CHECK(help("write").find("--permits") == std::string::npos);
  CHECK_THAT(ErrorOf({"read", "--permits", "2", "/l", "--", "c"}),
             Catch::Contains("'--permits' is not an option of read, but of exclusive, try"));
}

TEST_CASE("Help fits into eighty columns") {
  for (const char* name : {"exclusive", "read", "write", "try", "inspect", "release"}) {
    const std::string text = std::get<Text>(Parse({name, "--help"})).text;
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = text.find('\n', begin);
      CAPTURE(text.substr(begin, end - begin));
      CHECK(end - begin <= 80);
      begin = end + 1;
    }
  }
}

}  // namespace
}  // namespace zklock::cli
