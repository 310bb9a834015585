#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cli/documents/documents.h"
#include "cli/zklock.h"
#include "support/source.h"

namespace zklock::test {
namespace {

namespace fs = std::filesystem;

std::string ReadWhole(const fs::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns the block after `<!-- example: NAME -->` in README or `.\" example: NAME` in zklock(1).
std::string Example(const std::string& name) {
  const auto block = [](const std::string& text, const std::string& mark,
                        const std::string& end) -> std::optional<std::string> {
    const std::size_t found = text.find(mark);
    if (found == std::string::npos) return std::nullopt;
    const std::size_t begin = text.find('\n', found + mark.size()) + 1;
    return text.substr(begin, text.find(end, begin) - begin);
  };
  CAPTURE(name);
  const auto in_readme =
      block(ReadSource("README.md"), "<!-- example: " + name + " -->\n```", "```");
  if (in_readme) return *in_readme;
  const auto in_manual =
      block(ReadSource("man/zklock.1"), ".\\\" example: " + name + "\n.Bd", ".Ed");
  REQUIRE(in_manual);
  return WithoutEscapes(*in_manual);
}

/// Returns the command of a crontab line, as cron passes it to the shell.
std::string CronCommand(const std::string& line) {
  std::istringstream words(line);
  std::string skipped;
  for (int field = 0; field < 5; ++field) words >> skipped;
  std::string command;
  std::getline(words, command);
  return command;
}

/// A directory with the programs that the examples run; each prints that it ran. PATH includes them
/// and zklock. LOCKs are below a chroot for this test.
class Workspace {
 public:
  Workspace() {
    std::string name = (fs::temp_directory_path() / "zklock-readme.XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    directory_ = name;
    for (const char* program :
         {"backup.sh", "rotate.sh", "make", "search.sh", "rebuild.sh", "reindex.sh", "import.sh",
          "publish.sh", "report.sh", "sign.sh", "smoke-test.sh", "train.sh", "reboot"}) {
      Write(program, std::string("#!/bin/sh\necho ") + program + " ran with: \"$@\"\n");
    }
    path_ =
        fs::path(Binary()).parent_path().string() + ":" + directory_.string() + ":/usr/bin:/bin";
    servers_ = TestServers() + Tree().Create("/readme" + name.substr(name.find_last_of('.')));
  }
  ~Workspace() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(directory_ / file) << text;
    REQUIRE(chmod((directory_ / file).c_str(), 0755) == 0);
  }
  [[nodiscard]] fs::path Path(const std::string& file) const { return directory_ / file; }
  [[nodiscard]] ChildOptions Shell(const std::string& text) const {
    return {.argv = {"/bin/sh", "-c", text},
            .also_environment = {"PATH=" + path_, "ZKLOCK_SERVERS=" + servers_, "CI_PIPELINE_ID=42",
                                 "CI_PIPELINE_URL=https://ci.example/42",
                                 "CI_JOB_URL=https://ci.example/job/7", "ZKLOCK_LOCK="},
            .directory = directory_.string()};
  }
  void WaitForContenders(const std::string& lock, std::size_t count) const {
    Tree("", servers_).WaitForChildren(lock, count);
  }

 private:
  fs::path directory_;
  std::string path_;
  std::string servers_;
};

/// Runs an example and returns its standard output.
std::string OutputOf(const Workspace& workspace, const std::string& shell_text) {
  CAPTURE(shell_text);
  const Finished finished = Run(workspace.Shell(shell_text), Exited(0));
  CHECK(finished.err.empty());
  return finished.out;
}

/// Holds `lock` while the object lives.
class Holder {
 public:
  Holder(const Workspace& workspace, const std::string& lock)
      : child_(Child::Start([&] {
          auto options =
              workspace.Shell("exec zklock exclusive " + lock + " -- sh -c 'echo held; read x'");
          options.keep_stdin = true;
          return options;
        }())) {
    REQUIRE(child_.ReadLine() == "held");
  }
  ~Holder() {
    child_.CloseInput();
    child_.Wait();
  }

 private:
  Child child_;
};

TEST_CASE("README's crontab line runs the job on one host and stays quiet on the others") {
  const Workspace workspace;
  const std::string command = CronCommand(Example("cron"));
  CHECK(OutputOf(workspace, command) == "backup.sh ran with:\n");
  CHECK(OutputOf(workspace, command).empty());  // a host that starts the job after that run ended
  const Holder other(workspace, "/jobs/backup");
  CHECK(OutputOf(workspace, command).empty());
}

TEST_CASE("The queueing crontab line passes on its arguments") {
  const Workspace workspace;
  CHECK(OutputOf(workspace, CronCommand(Example("queue"))) == "rotate.sh ran with: --keep 14\n");
}

TEST_CASE("The crontab line that tries a job until it has succeeded runs it after a failure only") {
  const Workspace workspace;
  const std::string command = CronCommand(Example("interval"));
  const std::string works = ReadWhole(workspace.Path("report.sh"));
  workspace.Write("report.sh", "#!/bin/sh\nexit 3\n");
  Run(workspace.Shell(command), Exited(3));
  workspace.Write("report.sh", works);
  CHECK(OutputOf(workspace, command) == "report.sh ran with:\n");
  CHECK(OutputOf(workspace, command).empty());
}

TEST_CASE("The examples for GitLab, Jenkins and make run") {
  const Workspace workspace;
  const std::string gitlab = Example("gitlab");
  CHECK(OutputOf(workspace, gitlab.substr(gitlab.find("zklock"))) == "make ran with: deploy\n");
  const std::string jenkins = Example("jenkins");
  // The quoted part is a shell command.
  CHECK(OutputOf(workspace, "BUILD_URL=https://ci.example/7; eval \"" +
                                std::string("$(cat <<'END'\n") +
                                jenkins.substr(4, jenkins.rfind('\'') - 4) + "\nEND\n)\"") ==
        "make ran with: deploy\n");
  const std::string makefile = Example("makefile");
  workspace.Write("Makefile", makefile);
  CHECK(OutputOf(workspace, "/usr/bin/make -s release") == "sign.sh ran with:\n");
}

TEST_CASE("README's script holds a lock for part of its run and releases it at the end") {
  const Workspace workspace;
  CHECK(OutputOf(workspace,
                 "set -e\n" + Example("hold") + "zklock try /jobs/rotate -- echo free\n") ==
        "rotate.sh ran with: --keep 14\nfree\n");
}

TEST_CASE("README's deployment runs make") {
  const Workspace workspace;
  CHECK(OutputOf(workspace, Example("ci")) == "make ran with: deploy\n");
}

TEST_CASE("README's search and rebuild run") {
  const Workspace workspace;
  CHECK(OutputOf(workspace, Example("readwrite")) ==
        "search.sh ran with: needle\nrebuild.sh ran with:\n");
}

TEST_CASE("README's pipeline holds its lock across three jobs") {
  const Workspace workspace;
  const Words jobs = Lines(Example("reserve"));
  REQUIRE(jobs.size() == 3);
  CHECK(OutputOf(workspace, jobs[0]).empty());
  Run(workspace.Shell("zklock try /ci/staging -- true"), Exited(75));
  CHECK(OutputOf(workspace, jobs[1]) == "smoke-test.sh ran with:\n");
  CHECK(OutputOf(workspace, jobs[2]).empty());
  CHECK(OutputOf(workspace, "zklock try /ci/staging -- echo free") == "free\n");
}

TEST_CASE("The examples of a freeze and of a rack reserve and release") {
  const Workspace workspace;
  CHECK(OutputOf(workspace, Example("freeze")).empty());
  // The example uses the host's name as the ID.
  workspace.Write("hostname", "#!/bin/sh\necho web1\n");
  CHECK(OutputOf(workspace, Example("rack")) == "reboot ran with:\n");
}

TEST_CASE("The reindexing example takes all of its locks or none") {
  const Workspace workspace;
  const std::string command = Example("set");
  CHECK(OutputOf(workspace, command) == "reindex.sh ran with:\n");
  const Holder other(workspace, "/db/orders");
  const std::size_t option = command.find("exclusive ") + 10;
  Run(workspace.Shell(command.substr(0, option) + "-n " + command.substr(option)), Exited(75));
}

TEST_CASE("The example of three devices uses one that is free") {
  const Workspace workspace;
  CHECK(OutputOf(workspace, Example("any")) == "train.sh ran with: --device 0\n");
  const Holder other(workspace, "/gpu/0");
  CHECK(OutputOf(workspace, Example("any")) == "train.sh ran with: --device 1\n");
}

TEST_CASE("README's script locks itself and keeps its arguments") {
  const Workspace workspace;
  workspace.Write("report.sh",
                  "#!/bin/sh\n" + Example("self") + "echo \"$ZKLOCK_MODE $ZKLOCK_LOCK: $*\"\n");
  CHECK(OutputOf(workspace, "./report.sh --month 'this one'") ==
        "exclusive /jobs/report: --month this one\n");
}

TEST_CASE("README's script locks itself even in a daemon that has outlived an earlier lock") {
  const Workspace workspace;
  workspace.Write("report.sh", "#!/bin/sh\n" + Example("self") + "echo \"$ZKLOCK_TOKEN\"\n");
  // The daemon has all variables of the first run, and continues only after that run's lock has
  // been released.
  ChildOptions options = workspace.Shell(
      "zklock exclusive -q /jobs/report -- sh -c 'echo $ZKLOCK_TOKEN; "
      "exec 3<&0; setsid sh -c \"read go <&3; ./report.sh\" 2>/dev/null &'; echo over");
  options.keep_stdin = true;
  Child shell = Child::Start(options);
  const std::string first = shell.ReadLine();
  REQUIRE(shell.ReadLine() == "over");
  {
    const Holder other(workspace, "/jobs/report");
    shell.Write("\n");
    // It queues after the other run instead of running at the same time.
    workspace.WaitForContenders("/jobs/report", 2);
  }
  CHECK(shell.ReadLine() != first);
}

TEST_CASE("README's script tells a conflict from a failure") {
  const Workspace workspace;
  const std::string example = Example("conflict");
  CHECK(OutputOf(workspace, example) == "import.sh ran with:\nimported\n");
  {
    const Holder other(workspace, "/jobs/import");
    CHECK(OutputOf(workspace, example) == "another import is running\n");
  }
  workspace.Write("import.sh", "#!/bin/sh\nexit 3\n");
  CHECK(OutputOf(workspace, example) == "the import failed\n");
}

TEST_CASE("README's publisher gets an increasing token") {
  const Workspace workspace;
  const auto token = [&] {
    const std::string out = OutputOf(workspace, Example("token"));
    const std::string mark = "publish.sh ran with: --fencing-token ";
    REQUIRE(out.rfind(mark, 0) == 0);
    return std::stoll(out.substr(mark.size()));
  };
  const auto first = token();
  CHECK(token() > first);
}

TEST_CASE("README's backup with credentials runs, under its own LOCK") {
  const Workspace workspace;
  std::string example = Example("auth");
  const std::string file = "/etc/zklock.auth";
  const std::size_t found = example.find(file);
  REQUIRE(found != std::string::npos);
  // Use the current directory: tests do not write to /etc.
  example.replace(found, file.size(), "./zklock.auth");
  Run(workspace.Shell(example), Exited(78));
  CHECK(OutputOf(workspace, "umask 077; echo digest:backup:password >zklock.auth; " + example) ==
        "backup.sh ran with:\n");
  Run(workspace.Shell("zklock exclusive /jobs/backup -- true"), Exited(77));
}

TEST_CASE("README's inspect example shows the holder, the last run, a check and the servers") {
  const Workspace workspace;
  (void)OutputOf(workspace, "zklock exclusive --history 32 /jobs/backup -- backup.sh");
  const Holder other(workspace, "/jobs/backup");
  const std::string example = Example("inspect");
  const std::size_t report = example.find("zklock inspect --servers-report");
  REQUIRE(report != std::string::npos);
  const std::string out = OutputOf(workspace, example.substr(0, report));
  CHECK_THAT(out, Catch::Contains("LOCK") && Catch::Contains("HELD BY"));
  CHECK_THAT(out, Catch::Contains("/jobs/backup: the last recorded run\n"));
  CHECK_THAT(out, Catch::Contains("\nOK - /jobs/backup: held for "));
  // The exit status depends on how busy this host is.
  CHECK_THAT(Run(workspace.Shell(example.substr(report))).out, Catch::Contains("standalone"));
}

TEST_CASE("README's picture shows what zklock prints") {
  const fs::path screens = SourcePath("tests/screens");
  CHECK_THAT(ReadWhole(screens.parent_path().parent_path() / "README.md"),
             Catch::Contains("](tests/screens/hand-over.svg)"));
  // Small enough for a page that can be read in two minutes.
  CHECK(fs::file_size(screens / "hand-over.svg") < 40000);
  Run({.argv = {"/usr/bin/python3", "-B", screens / "picture.py", "--check", "--zklock", Binary(),
                "--servers", TestServers() + Tree().Create("/readme-picture")}},
      Exited(0));
}

TEST_CASE("README's picture of reports shows the stored screens") {
  const std::string drawing = SourcePath("tests/screens/reports.py");
  Run({.argv = {"/usr/bin/python3", "-B", drawing, "--check"}}, Exited(0));
}

/// Returns the names of all tests, each between quotation marks.
std::string TestNames() {
  std::string names;
  for (const auto& entry : fs::recursive_directory_iterator(SourcePath("tests"))) {
    if (entry.path().extension() == ".cc") names += ReadWhole(entry.path());
  }
  return std::regex_replace(names, std::regex("\"\n +\""), "");
}

struct Named {
  std::string kind;  ///< "mutation", "model", …; empty for a test
  std::string name;
};

/// Returns the names between backquotes in `text`.
std::vector<Named> NamesIn(const std::string& text) {
  static const std::regex pattern("(?:(mutation|model|fault|fuzzer) )?`([^`]+)`");
  std::vector<Named> names;
  for (std::sregex_iterator one(text.begin(), text.end(), pattern), end; one != end; ++one) {
    names.push_back({.kind = one->str(1), .name = one->str(2)});
  }
  return names;
}

TEST_CASE("each attack of the threat model names tests that exist, or the page that describes it") {
  const std::string document = ReadSource("SECURITY.md");
  const std::string tests = TestNames();
  int attacks = 0;
  for (const std::string& line : Lines(document.substr(document.find("| attack |")))) {
    if (line.starts_with("| attack") || line.starts_with("| ---")) continue;
    CAPTURE(line);
    const std::string shown = line.substr(line.rfind('|', line.size() - 2));
    ++attacks;
    if (shown.find("CAVEATS") != std::string::npos) continue;
    const std::vector<Named> names = NamesIn(shown);
    REQUIRE_FALSE(names.empty());
    for (const Named& one : names) {
      CAPTURE(one.name);
      CHECK(tests.find("\"" + one.name + "\"") != std::string::npos);
    }
  }
  CHECK(attacks > 15);
}

TEST_CASE("each defect of the record names a test, mutation, model, fault or fuzzer that exists") {
  const std::string tests = TestNames();
  const std::map<std::string, std::string> sources = {
      {"mutation", ReadSource("tests/simulation/mutations")},
      {"model", ReadSource("scripts/model")},
      {"fault", ReadSource("tests/faults/faults.py")}};
  const auto text_of = [](const Named& one) {
    if (one.kind == "mutation") return "\n# " + one.name + " | ";
    if (one.kind == "model") return "\n" + one.name + " ";
    return "def _do_" + one.name + "(";
  };
  const std::regex row("\\| [^|]+ \\| [^|]+ \\| ([^|]+) \\| [^|]+ \\|");
  int defects = 0;
  for (const std::string& line : Lines(ReadSource("tests/faults/record.md"))) {
    std::smatch cells;
    if (!line.starts_with("| ") || line.starts_with("| ---") || line.starts_with("| defect |")) {
      continue;
    }
    CAPTURE(line);
    REQUIRE(std::regex_match(line, cells, row));
    ++defects;
    if (cells.str(1) == "**no test**") continue;
    const std::vector<Named> names = NamesIn(cells.str(1));
    REQUIRE_FALSE(names.empty());
    for (const Named& one : names) {
      CAPTURE(one.kind, one.name);
      if (one.kind.empty()) {
        CHECK(tests.find("\"" + one.name + "\"") != std::string::npos);
      } else if (one.kind == "fuzzer") {
        CHECK(fs::exists(SourcePath("tests/fuzz/" + one.name + "_fuzz.cc")));
      } else {
        CHECK(sources.at(one.kind).find(text_of(one)) != std::string::npos);
      }
    }
  }
  CHECK(defects > 100);
}

}  // namespace
}  // namespace zklock::test
