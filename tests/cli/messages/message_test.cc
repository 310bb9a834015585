// Every message of zklock is provoked by a test. To add one:
//
// 1. Write the constant, `constexpr char kNAME[] = "…"`, in a `namespace message` of src/cli: with
//    the event (event.cc) or end reason (end_reason.cc) that it belongs to, or in a *messages.h.
// 2. Lower case, one line, no full stop: what happened, on which path, what to do. {} is fmt's
//    placeholder.
// 3. A wrong command line or file: add a row to WrongWords() or WrongFiles() below.
// 4. Anything else: in the message_*.cc for its subject, write a function that makes zklock print
//    it and returns its standard error; add {{"kNAME"}, Function} to the list at the end.
// 5. A constant that is only part of a line is a Part("kNAME", "the words expected").
// 6. A message that no test can provoke belongs in message_alone.cc, with the reason.
//
// The constants are read from the sources: a constant without a case, or a case without a constant,
// fails the test.

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "cli/documents/documents.h"
#include "cli/messages/provocation.h"
#include "cli/zklock.h"
#include "support/source.h"
#include "support/sudo.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

struct Case {
  std::string message;
  int status;
  Words words;              ///< of zklock
  Words environment = {};   ///< NAME=VALUE
  Words through = {};       ///< the command that runs zklock; empty: none
  std::string binary = {};  ///< empty: the usual one
  Words values = {};        ///< of the message; see Saying
};

/// Returns a run with --any of `count` LOCKs.
Words AnyOf(int count) {
  Words words = {"exclusive", "--any"};
  for (int i = 0; i < count; ++i) words.push_back("/m" + std::to_string(i));
  return words + Words{"--", "true"};
}

/// Returns command lines that are invalid by themselves. RUN represents the words that every run
/// needs.
std::vector<Case> WrongWords() {
  std::vector<Case> cases = {
      {"kNoSubcommand", 64, {}},
      {"kUnknownSubcommand", 64, {"exlusive"}},
      {"kUnknownOption", 64, {"exclusive", "--frob", "RUN"}},
      {"kOthersOption", 64, {"exclusive", "--json", "RUN"}},
      {"kBelongsAfter", 64, {"--servers", "a:1", "exclusive", "RUN"}},
      {"kNoLock", 64, {"exclusive", "--", "true"}},
      {"kLockTaken", 64, {"exclusive", "--wait", "/jobs/backup", "--", "true"}},
      {"kSeveralLocks", 64, {"inspect", "/l", "/m"}},
      {"kTwoModes", 64, {"exclusive", "--also-read", "/l", "RUN"}},
      {"kBadLock", 64, {"exclusive", "/l/", "--", "true"}},
      {"kTypographicDash", 64, {"exclusive", "\u2013n", "/l", "--", "true"}},
      {"kTypographicDash", 64, {"inspect", "\u2014\u2014watch"}},
      {"kAmbiguousLock", 64, {"exclusive", "jobs/backup", "--", "true"}},
      {"kNoCommand", 64, {"exclusive", "/l", "--"}},
      {"kTwoCommands", 64, {"exclusive", "-c", "true", "RUN"}},
      {"kRunsNoCommand", 64, {"inspect", "RUN"}},
      {"kNeedsValue", 64, {"exclusive", "/l", "--wait", "--", "true"}},
      {"kNoSeparator", 64, {"exclusive", "/l", "ls", "-l"}},
      {"kTakesNoValue", 64, {"exclusive", "--quiet=so", "RUN"}},
      {"kExclude", 64, {"exclusive", "--quiet", "--verbose", "RUN"}},
      {"kRequires", 64, {"inspect", "--max-age", "1h", "/l"}},
      {"kNoDuration", 64, {"exclusive", "--wait", "soon", "RUN"}},
      {"kZero", 64, {"exclusive", "--connect-timeout", "0", "RUN"}},
      {"kTooLong", 64, {"exclusive", "--session-timeout", "100d", "RUN"}},
      {"kTooLong", 64, {"exclusive", "--max-run", "9999999d", "RUN"}},
      {"kInPlaceOfSubcommand", 64, {"exclusive", "--print-config", "RUN"}},
      {"kInPlaceOfSubcommand", 64, {"inspect", "--version"}},
      {"kNoChoice", 64, {"exclusive", "--on-lost", "cry", "RUN"}},
      {"kNoNumber", 64, {"exclusive", "--max-queue", "few", "RUN"}},
      {"kNoNumber", 64, {"exclusive", "-E", "256", "RUN"}},
      {"kNoSignal", 64, {"exclusive", "--stop-signal", "BOO", "RUN"}},
      {"kBadServers", 64, {"exclusive", "-z", "zk1:0", "RUN"}},
      {"kBadPath", 64, {"exclusive", "--root", "locks", "backup", "--", "true"}},
      {"kNoProxyCommand", 64, {"exclusive", "--proxy-command", "", "RUN"}},
      {"kBadProxyCommand", 64, {"exclusive", "--proxy-command", "nc %x", "RUN"}},
      {"kSecretNeedsSasl", 64, {"exclusive", "RUN"}, {"ZKLOCK_AUTH=sasl:me:secret"}},
      {"kNoTransport",
       78,
       {"exclusive", "--tls", "RUN"},
       {},
       {"sh", "-c", "t=$(mktemp -d); cp $0 $t; $t/zklock \"$@\"; s=$?; rm -r $t; exit $s"}},
      {"kSaslNeedsSecret", 64, {"exclusive", "--sasl", "digest-md5", "RUN"}},
      {"kTwoSecrets",
       64,
       {"exclusive", "--sasl", "digest-md5", "RUN"},
       {"ZKLOCK_AUTH=sasl:me:secret\nsasl:you:secret"}},
      {"kLongSecret",
       64,
       {"exclusive", "--sasl", "digest-md5", "RUN"},
       {"ZKLOCK_AUTH=sasl:me:" + std::string(4094, 'x')}},
      {"kNoService", 64, {"exclusive", "--sasl-service", "a/b", "RUN"}},
      {"kNoKey", 78, {"exclusive", "--tls-cert", "/etc/passwd", "RUN"}},
      {"kKeyNeedsCert", 64, {"exclusive", "--tls-key", "/key.pem", "RUN"}},
      {"kOnlyOptions", 64, {"--print-config", "/l"}},
      {"kSimpleShared", 64, {"read", "--dialect", "simple", "RUN"}},
      {"kSimpleQueue", 64, {"exclusive", "--dialect", "simple", "--supersede", "RUN"}},
      {.message = "kManyAlternatives", .status = 64, .words = AnyOf(65), .values = {"64", "65"}},
      {"kAlternativeTwice", 64, {"try", "--any", "/m", "/l", "/m", "RUN"}},
      {"kReserveAnyWaits",
       64,
       {"exclusive", "--any", "--nonblock", "--reserve", "ci", "/m", "RUN"}},
      {"kPermitsOneLock", 64, {"exclusive", "--permits", "2", "/m", "RUN"}},
      {.message = "kTakesTooMany",
       .status = 64,
       .words = {"exclusive", "--permits", "2", "--take", "3", "RUN"},
       .values = {"3", "2"}},
      {"kPermitsShared", 64, {"try", "--read", "--permits", "2", "RUN"}},
      {"kPermitsDialect", 64, {"exclusive", "--permits", "2", "--dialect", "kazoo", "RUN"}},
      {"kNotForReaders", 64, {"try", "--read", "--min-interval", "1h", "RUN"}},
      {"kNotForReaders", 64, {"try", "--read", "--once-per", "1h", "RUN"}},
      {"kNotForReaders", 64, {"try", "--read", "--history", "8", "RUN"}},
      {"kHistorySimple", 64, {"try", "--dialect", "simple", "--history", "8", "RUN"}},
      {"kNoReservationId", 64, {"exclusive", "--reserve", "a b", "RUN"}},
      {"kNoReservationId", 64, {"release", "--reserve", "", "/l"}},
      {"kOfNoCommand", 64, {"exclusive", "--reserve", "x", "--kill-after", "1s", "/l"}},
      {"kReserveDialect", 64, {"exclusive", "--reserve", "x", "--dialect", "simple", "RUN"}},
      {"kAclNeedsCredentials", 64, {"exclusive", "--acl", "creator", "RUN"}},
      {"kNoEvents", 64, {"exclusive", "--events", "", "RUN"}},
      {"kNoDescriptor", 64, {"exclusive", "--events", "77", "RUN"}},
      {"kCannotAppend", 71, {"exclusive", "--events", "/dev/null/x", "RUN"}},
      {"kHoldsOnly", 64, {"exclusive", "--hold", "RUN"}},
      {"kConflictUnseen", 64, {"try", "--hold", "-E", "0", "/l"}},
      {"kNoProcessNumber", 64, {"exclusive", "--hold", "--owner-pid", "me", "/l"}},
      {"kNoSuchProcess", 64, {"exclusive", "--hold", "--owner-pid", "2147483646", "/l"}},
      {"kUnclearOwner", 64, {"exclusive", "--hold", "/l"}, {}, {"/usr/bin/timeout", "100"}},
      {"kReportTakesNoLock", 64, {"inspect", "--servers-report", "/l"}},
      {"kNoOutput", 64, {"inspect", "--prometheus", "--output", "", "/l"}},
      {"kNoDurationLimit", 64, {"inspect", "--max-held", "1h:", "/l"}},
      {"kLimitOrder", 64, {"inspect", "--max-waiting", "2:1", "/l"}},
      {"kNoName", 64, {"release", "/l", "--contender", "a/b"}},
      {"kFileUnread", 78, {"exclusive", "--config", "/nowhere/zklock.conf", "RUN"}},
      {"kNoCredentials", 78, {"exclusive", "RUN"}, {"ZKLOCK_AUTH=# none"}},
      {"kNoCredential", 78, {"exclusive", "RUN"}, {"ZKLOCK_AUTH=secret"}},
      {"kNoDigest", 78, {"exclusive", "RUN"}, {"ZKLOCK_AUTH=digest:secret"}},
      {"kSecretControl", 78, {"exclusive", "RUN"}, {"ZKLOCK_AUTH=digest:a:secret\t"}},
      {"kSecretsUnread", 78, {"exclusive", "--auth-file", "/nowhere/auth", "RUN"}},
      {"kSecretIsNoFile", 78, {"exclusive", "--auth-file", "digest:us:secret", "RUN"}},
      {"kNoRegularFile", 78, {"exclusive", "--auth-file", "/dev/null", "RUN"}},
      {"kNoTlsFile", 78, {"exclusive", "--tls-ca", "/", "RUN"}},
  };
  for (Case& one : cases) {
    if (one.words.empty() || one.words.back() != "RUN") continue;
    one.words.pop_back();
    one.words.insert(one.words.end(), {"/l", "--", "true"});
  }
  return cases;
}

/// Returns cases with an error in a file.
std::vector<Case> WrongFiles(const TemporaryDirectory& directory) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& message, int status, const std::string& option,
                       const std::string& text, mode_t mode) {
    const std::string file = directory.Write(message, text);
    REQUIRE(chmod(file.c_str(), mode) == 0);
    cases.push_back({message, status, {"exclusive", option, file, "/l", "--", "true"}});
  };
  add("kLineControl", 78, "--config", "label = a\x01\n", 0644);
  add("kNoSetting", 78, "--config", "label\n", 0644);
  add("kUnknownSetting", 78, "--config", "lable = x\n", 0644);
  add("kSetTwice", 78, "--config", "wait = 5s\nlabel = x\nwait = 5s\n", 0644);
  add("kOpenQuotes", 78, "--config", "label = \"x\n", 0644);
  add("kNoChoice", 78, "--config", "quiet = perhaps\n", 0644);
  add("kTooLarge", 78, "--auth-file", std::string(100000, '\n'), 0600);
  add("kOpenFile", 77, "--auth-file", "digest:a:b\n", 0644);
  return cases;
}

/// Returns cases with a file or a process of another user: nobody if the test runs as root,
/// otherwise root.
std::vector<Case> OtherUsers(const TemporaryDirectory& directory) {
  Case file{"kForeignFile", 77, {"exclusive", "--auth-file", "/etc/passwd", "/l", "--", "true"}};
  Case owner{"kForeignOwner", 64, {"exclusive", "--hold", "--owner-pid", "1", "/l"}};
  if (geteuid() == 0) {
    file.words[2] = directory.Write("theirs", "digest:a:b\n");
    REQUIRE(chown(file.words[2].c_str(), kNobody, kNobody) == 0);
    // The user nobody can run a binary in this directory.
    REQUIRE(chmod(directory.path().c_str(), 0755) == 0);
    owner.binary = directory.Path("zklock");
    std::filesystem::copy_file(Binary(), owner.binary);
    owner.through = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  } else {
    // In that namespace, root's files belong to an unknown user.
    file.through = {"/usr/bin/unshare", "--user", "--map-root-user"};
  }
  return {file, owner};
}

/// Returns cases of a zklock nested in a zklock that holds the lock.
std::vector<Case> Nested() {
  const std::string lock = NewLock("message");
  const Words permit = {"exclusive", "--permits", "1", NewLock("message"), "--"};
  Words permits = permit;
  permits.push_back(Binary());
  permits.insert(permits.end(), permit.begin(), permit.end());
  permits.push_back("true");
  const Words two = {"exclusive", "--permits", "3", "--take", "2", NewLock("message"), "--"};
  Words too_few = two;
  too_few.push_back(Binary());
  too_few.insert(too_few.end(), two.begin(), two.end());
  too_few.push_back("true");
  return {{"kNotCovered", 64, {"read", lock, "--", Binary(), "write", lock, "--", "true"}},
          {"kNotCovered", 64, {"read", lock, "--", Binary(), "try", "--write", lock, "--", "true"}},
          {.message = "kPermitsHeldAbove", .status = 64, .words = permits, .values = {"", "1"}},
          {.message = "kTooFewLeftAbove",
           .status = 64,
           .words = too_few,
           .values = {"", "2", "3", "2"}},
          {"kIntervalHeldAbove",
           64,
           {"exclusive", lock, "--", Binary(), "try", "--min-interval", "1h", lock, "--", "true"}},
          {"kWaitsForOwner",
           64,
           {"exclusive", lock, "--", Binary(), "exclusive", "--hold", "--owner-pid",
            std::to_string(getpid()), lock}}};
}

void Check(const Case& one, const std::string& text) {
  ChildOptions options = Zklock(one.words);
  if (!one.binary.empty()) options.argv.front() = one.binary;
  options.argv.insert(options.argv.begin(), one.through.begin(), one.through.end());
  options.also_environment = one.environment;
  CAPTURE(one.message, text);
  const Finished finished = Run(options, Exited(one.status));
  CHECK(finished.out.empty());
  const Words lines = Lines(finished.err);
  REQUIRE(!lines.empty());
  CHECK(IsMessage(lines.front(), text, one.values));
  // After a usage error, a second line points to --help. Secrets are never shown.
  CHECK(lines.size() == (one.status == 64 ? 2 : 1));
  CHECK_THAT(finished.err, !Catch::Contains("secret"));
}

std::vector<Case> WordCases(const TemporaryDirectory& directory) {
  std::vector<Case> cases = WrongWords();
  for (const auto& more : {WrongFiles(directory), OtherUsers(directory), Nested()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

TEST_CASE("zklock prints each message about usage, files and owners") {
  const TemporaryDirectory directory;
  for (const Case& one : WordCases(directory)) {
    CAPTURE(one.message);
    REQUIRE(ListedMessages().count(one.message) == 1);
    Check(one, ListedMessages().at(one.message));
  }
}

TEST_CASE("zklock prints each message about paths and lists of servers") {
  CheckProvocations(PathProvocations());
}
TEST_CASE("zklock prints each message about a run") { CheckProvocations(RunProvocations()); }
TEST_CASE("zklock prints each message about a queue", "[slow]") {
  CheckProvocations(QueueProvocations());
}
TEST_CASE("zklock prints each message about a lost lock", "[slow]") {
  CheckProvocations(LossProvocations());
}
TEST_CASE("zklock prints each message about servers", "[slow]") {
  CheckProvocations(ServerProvocations());
}
TEST_CASE("zklock prints each message about unsound answers") {
  CheckProvocations(AnswerProvocations());
}
TEST_CASE("zklock prints each message about a LOCK that cannot be used") {
  CheckProvocations(LockProvocations());
}
TEST_CASE("zklock prints each message of inspect") { CheckProvocations(InspectProvocations()); }
TEST_CASE("zklock prints each message of release") { CheckProvocations(ReleaseProvocations()); }
TEST_CASE("zklock prints each message of nested runs") { CheckProvocations(NestingProvocations()); }
TEST_CASE("the messages that no test can provoke are printed as written") {
  CheckProvocations(SaidAloneProvocations());
}

TEST_CASE("each message has a case that provokes it") {
  const TemporaryDirectory directory;
  std::set<std::string> provoked;
  for (const Case& one : WordCases(directory)) provoked.insert(one.message);
  for (const auto& provocations :
       {PathProvocations(), RunProvocations(), QueueProvocations(), LossProvocations(),
        ServerProvocations(), AnswerProvocations(), LockProvocations(), InspectProvocations(),
        ReleaseProvocations(), NestingProvocations(), SaidAloneProvocations()}) {
    for (const Provocation& one : provocations) {
      for (const Saying& saying : one.says) provoked.insert(saying.message);
    }
  }
  std::set<std::string> listed;
  for (const auto& [name, text] : ListedMessages()) {
    CAPTURE(name, text);
    listed.insert(name);
    CHECK(provoked.count(name) == 1);
    CHECK(text.find("\\n") == std::string::npos);
  }
  CHECK(listed.size() > 150);
  CHECK(provoked == listed);
}

TEST_CASE("report and commands contain no sentences of their own") {
  // A string literal with two words counts as a sentence.
  static const std::regex sentence(R"re("([^"\\]|\\.)*[a-z}] [a-z{]([^"\\]|\\.)*")re");
  int files = 0;
  const std::filesystem::path root = SourcePath("src");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().lexically_relative(root);
    if (name.starts_with("cli/reports/report") || name.starts_with("commands/")) {
      if (!name.ends_with(".cc")) continue;
      ++files;
      for (const std::string& line : Lines(ReadSource("src/" + name))) {
        CAPTURE(name, line);
        CHECK_FALSE(std::regex_search(line.substr(0, line.find("//")), sentence));
      }
    }
  }
  CHECK(files > 15);
}

}  // namespace
}  // namespace zklock::test
