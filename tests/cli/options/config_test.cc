// Sources of options: arguments, the environment, the user's file, the system's file.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "cli/documents/documents.h"
#include "cli/zklock.h"
#include "support/skip.h"
#include "support/sudo.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// Returns `zklock WORDS` as a user whose configuration is `directory`/zklock.conf.
ChildOptions WithUserFile(const TemporaryDirectory& directory, const Words& words) {
  ChildOptions options = Zklock(words);
  options.environment = PlainEnvironment();
  options.environment->push_back("XDG_CONFIG_HOME=" + directory.path());
  return options;
}

/// Returns the line of --print-config that shows `name`, with single spaces. An option without a
/// value is shown as a comment.
std::string Shown(const ChildOptions& options, const std::string& name) {
  const Finished finished = Run(options);
  CAPTURE(finished.err);
  REQUIRE(finished.exit == Exited(0));
  for (const std::string& line : Lines(finished.out)) {
    if (!line.starts_with(name + " = ") && !line.starts_with("# " + name + " = ")) continue;
    std::string plain;
    for (const char c : line) {
      if (c != ' ' || !plain.ends_with(' ')) plain += c;
    }
    return plain;
  }
  return "";
}

/// Returns the output of --print-config without the origins.
Words WithoutOrigins(const std::string& printed) {
  Words lines = Lines(printed);
  for (std::string& line : lines) {
    line.erase(line.rfind("  # "));
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

/// Returns whether WithAccounts() works here.
bool CanReplaceAccounts() {
  return geteuid() == 0 && Run({.argv = {"/usr/bin/unshare", "--mount", "true"}}).exit == Exited(0);
}

/// Runs `options` in a mount namespace where /etc/passwd and /etc/group are the files `passwd` and
/// `group` in `directory`.
void WithAccounts(const TemporaryDirectory& directory, ChildOptions& options) {
  options.argv.insert(options.argv.begin(), {"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
                                             "mount --bind \"$0/group\" /etc/group && "
                                             "mount --bind \"$0/passwd\" /etc/passwd && "
                                             "exec \"$@\"",
                                             directory.path()});
}

/// Makes `options` run zklock as a user who cannot read the subdirectories of `directory`.
void AsAnotherUser(const TemporaryDirectory& directory, ChildOptions& options) {
  if (geteuid() != 0) return;  // without the permission bit, not even the owner can read them
  // Any user can run this copy.
  REQUIRE(chmod(directory.path().c_str(), 0755) == 0);
  const std::string binary = directory.Path("zklock");
  std::filesystem::copy_file(Binary(), binary);
  options.argv = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", binary};
}

/// Checks that the user's file, `file`, is not used, and that -v and --print-config report this.
void CheckUnused(const ChildOptions& options, const std::string& file, const std::string& why) {
  const std::string report = file + ": not used: " + why + "; name it with --config to use it\n";
  const auto run = [&](const Words& words) {
    ChildOptions all = options;
    all.argv.insert(all.argv.end(), words.begin(), words.end());
    all.also_environment = {"XDG_CONFIG_HOME=" + file.substr(0, file.rfind('/')), "ZKLOCK_CONFIG="};
    return Run(all);
  };
  const std::string lock = NewLock("config");
  for (const char* verbosity : {"--no-nest", "-v", "-q"}) {
    const Finished finished = run({"exclusive", verbosity, lock, "--", "true"});
    CAPTURE(finished.err);
    CHECK(finished.exit == Exited(0));
    CHECK(finished.err.starts_with("zklock: " + report) == (verbosity != std::string("-q")));
  }
  CHECK_THAT(run({"inspect", "-v", lock}).err, Catch::StartsWith("zklock: " + report));
  CHECK_THAT(run({"release", "-v", lock}).err, Catch::StartsWith("zklock: " + report));
  const Finished printed = run({"--print-config"});
  CHECK(printed.exit == Exited(0));
  CHECK_THAT(printed.out, Catch::StartsWith("# " + report));
}

}  // namespace

TEST_CASE("an argument beats the environment, which beats the file, which beats the default") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "# ours\n\nroot = /file\n");
  ChildOptions options = WithUserFile(directory, {"--print-config"});
  CHECK(Shown(options, "root") == "root = /file # " + file + ":3");
  CHECK(Shown(options, "servers") == "servers = 127.0.0.1:2181 # default");
  options.environment->push_back("ZKLOCK_ROOT=/environment");
  CHECK(Shown(options, "root") == "root = /environment # $ZKLOCK_ROOT");
  options.argv.insert(options.argv.end(), {"--root", "/argument"});
  CHECK(Shown(options, "root") == "root = /argument # argument");
}

TEST_CASE(
    "a file named by --config is read in place of the other files, whichever way it is named") {
  const TemporaryDirectory directory;
  REQUIRE(!directory.Write("zklock.conf", "root = /user\nwait = 1m\n").empty());
  const std::string named = directory.Write("named.conf", "root = /named\n");
  ChildOptions options = WithUserFile(directory, {"--print-config", "--config", named});
  CHECK(Shown(options, "root") == "root = /named # " + named + ":1");
  CHECK(Shown(options, "wait") == "# wait = # default");
  options = WithUserFile(directory, {"--print-config"});
  options.environment->push_back("ZKLOCK_CONFIG=" + named);
  CHECK(Shown(options, "root") == "root = /named # " + named + ":1");
}

TEST_CASE("a file named by --config may be a pipe, and may have at most 64 KiB") {
  CHECK(RunZklock({"--print-config", "--config", "/dev/zero"}, Exited(78)).err ==
        "zklock: /dev/zero: larger than 64 KiB; see --config\n");
  const TemporaryDirectory directory;
  const std::string most = "label = x\n#" + std::string(64 * 1024 - 11, '.');
  CHECK_THAT(
      RunZklock({"--print-config", "--config", directory.Write("most", most)}, Exited(0)).out,
      Catch::Contains("label = x"));
  RunZklock({"--print-config", "--config", directory.Write("more", most + ".")}, Exited(78));
  ChildOptions options = Zklock({"--print-config", "--config", "/dev/stdin"});
  options.stdin_text = most;
  CHECK_THAT(Run(options, Exited(0)).out, Catch::Contains("label = x"));
}

TEST_CASE("a signal ends zklock while it waits for the file named by --config") {
  const TemporaryDirectory directory;
  const std::string fifo = directory.Path("fifo");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const bool completes = GENERATE(false, true);
  const Words words = {"inspect", "--config", fifo};
  Child zklock = Child::Start(Zklock(completes ? Words{"--complete"} + words + Words{""} : words));
  const std::ofstream writer(fifo);  // blocks until zklock opens it for reading
  zklock.Signal(SIGTERM);
  CHECK(zklock.Wait() == Killed(SIGTERM));
}

TEST_CASE("quiet or verbose in the user's file overrides the other in the system's file") {
  if (!CanReplaceAccounts()) return Skip("root and mount namespaces");
  const TemporaryDirectory directory;
  REQUIRE(mkdir(directory.Path("etc").c_str(), 0755) == 0);
  (void)directory.Write("etc/zklock.conf", "quiet = yes\n");
  (void)directory.Write("zklock.conf", "verbose = yes\n");
  ChildOptions options = WithUserFile(directory, {"--print-config"});
  options.argv.insert(options.argv.begin(),
                      {"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
                       "mount --bind \"$0/etc\" /etc && exec \"$@\"", directory.path()});
  const std::string shown = Run(options, Exited(0)).out;
  CHECK_THAT(shown, Catch::Contains("\nverbose = yes") && !Catch::Contains("\nquiet = yes"));
}

TEST_CASE("without $XDG_CONFIG_HOME the user's file is below ~/.config") {
  const TemporaryDirectory home;
  REQUIRE(mkdir(home.Path(".config").c_str(), 0700) == 0);
  const std::string file = home.Write(".config/zklock.conf", "label = from home\n");
  ChildOptions options = Zklock({"--print-config"});
  options.environment = {"HOME=" + home.path()};
  CHECK(Shown(options, "label") == "label = from home # " + file + ":1");
}

TEST_CASE("options for commands in a file do not affect --hold") {
  const TemporaryDirectory directory;
  const std::string events = directory.Path("events");
  REQUIRE(!directory
               .Write("zklock.conf",
                      "stop-signal = INT\non-lost = warn\ndescendants = kill\n"
                      "events = " +
                          events + "\npublish-command = yes\n")
               .empty());
  const std::string lock = NewLock("hold");
  ChildOptions options = WithUserFile(directory, {});
  options.argv = {"sh", "-c", "\"$Z\" exclusive --hold $L && \"$Z\" release $L; echo $?"};
  options.also_environment = {"Z=" + Binary(), "L=" + lock, "ZKLOCK_SERVERS=" + TestServers()};
  const Finished finished = Run(options);
  CAPTURE(finished.err);
  CHECK(finished.out == "0\n");
}

TEST_CASE("a run reads its options from the file; subcommands ignore the options of others") {
  const TemporaryDirectory directory;
  REQUIRE(!directory
               .Write("zklock.conf", "servers = " + TestServers() +
                                         "\nroot = /t/config\nwait = 5m\npublish-command = yes\n")
               .empty());
  const Finished finished = Run(WithUserFile(directory, {"try", "one", "-c", "echo $ZKLOCK_LOCK"}));
  CAPTURE(finished.err);
  CHECK(finished.out == "/t/config/one\n");
  CHECK(finished.exit == Exited(0));
  Run(WithUserFile(directory, {"inspect", "one"}), Exited(0));
}

TEST_CASE("every subcommand accepts the example file of the manual") {
  const TemporaryDirectory directory;
  const Words files = Section(ReadSource("man/zklock.1"), ".Sh FILES", ".Sh");
  const auto begin = std::find(files.begin(), files.end(), ".Bd -literal -offset indent");
  const auto end = std::find(begin, files.end(), ".Ed");
  REQUIRE(begin < end);
  std::string example;
  for (auto line = begin + 1; line != end; ++line) example += *line + "\n";
  // The checks below need these two lines.
  REQUIRE_THAT(example, Catch::Contains("\nwait = 30m\n") && Catch::Contains("\nquiet = yes\n"));
  REQUIRE(!directory.Write("zklock.conf", example).empty());
  const std::string lock = NewLock("config");
  const auto run = [&](const Words& words) {
    ChildOptions options = WithUserFile(directory, words);
    options.also_environment = {"ZKLOCK_SERVERS=" + TestServers()};
    const Finished finished = Run(options);
    UNSCOPED_INFO(words[0] + ": " + finished.err);
    return finished;
  };
  for (const char* subcommand : {"exclusive", "read", "write", "try"}) {
    CHECK(run({subcommand, lock, "--", "true"}).exit == Exited(0));
  }
  CHECK(run({"release", lock}).exit == Exited(75));  // nothing is held
  Child holder = StartHolder(lock);
  const Finished table = run({"inspect", lock});
  CHECK(table.exit == Exited(0));
  CHECK_THAT(table.out, Catch::StartsWith(lock + ": held by 1"));
  CHECK(run({"inspect", "--json", lock}).exit == Exited(0));
  CHECK(run({"inspect", "--quiet", lock}).exit == Exited(75));
  REQUIRE(run({"release", "--holders", "--yes", lock}).exit == Exited(0));
  CHECK(holder.Wait() == Exited(76));
}

TEST_CASE("a file does not set an option that has the same name but another meaning") {
  const TemporaryDirectory directory;
  const std::string lock = NewLock("config");
  const auto run = [&](const std::string& text, Words words) {
    words.insert(words.begin() + 1, {"--config", directory.Write("zklock.conf", text)});
    return RunZklock(words);
  };
  for (const char* wait : {"soon", "yes"}) {
    const std::string text = std::string("wait = ") + wait + "\n";
    const Finished exclusive = run(text, {"exclusive", lock, "--", "true"});
    CHECK(exclusive.exit == Exited(78));
    CHECK_THAT(exclusive.err, Catch::StartsWith("zklock: " + directory.Path("zklock.conf") +
                                                ":1: --wait: invalid duration '" + wait + "'"));
    // release has no --wait.
    CHECK(run(text, {"release", lock}).exit == Exited(75));
  }
  Child holder = StartHolder(lock);
  const std::string name = Tree().Children(lock).at(0);
  CHECK_THAT(run("", {"inspect", "--verbose", lock}).out, Catch::Contains(name));
  CHECK_THAT(run("verbose = yes\n", {"inspect", lock}).out, !Catch::Contains(name));
  CHECK(run("verbose = maybe\n", {"inspect", lock}).exit == Exited(78));
}

TEST_CASE("a file with the output of --print-config sets the same options") {
  const TemporaryDirectory directory;
  const auto given = GENERATE_COPY(
      Words{}, Words{"--wait", "1h30m", "--quiet", "--supersede", "--stop-signal", "INT"},
      Words{"--label", "nightly run, #2"}, Words{"--label", "# one"}, Words{"--label", " a "},
      Words{"--label", "\ta\t"}, Words{"--label", "a \"b\" c"});
  CAPTURE(given);
  const auto print = [&](const Words& words) {
    ChildOptions options = Zklock({"--print-config"});
    options.argv.insert(options.argv.end(), words.begin(), words.end());
    const Finished finished = Run(options);
    CAPTURE(finished.err);
    REQUIRE(finished.exit == Exited(0));
    return finished.out;
  };
  const std::string printed = print(given);
  const std::string file = directory.Write("zklock.conf", printed);
  const std::string again = print({"--config", file});
  CHECK(WithoutOrigins(again) == WithoutOrigins(printed));
  REQUIRE(!directory.Write("zklock.conf", again).empty());
  CHECK(print({"--config", file}) == again);

  const std::string lock = NewLock("config");
  for (const char* subcommand : {"exclusive", "read", "write", "try", "inspect", "release"}) {
    Words words = {subcommand, "--config", file, lock};
    const bool runs = subcommand != std::string("inspect") && subcommand != std::string("release");
    if (runs) words.insert(words.end(), {"--", "true"});
    CAPTURE(subcommand);
    RunZklock(words, Exited(subcommand == std::string("release") ? 75 : 0));
  }
}

TEST_CASE("a file that a run refuses is refused by --print-config with the same message") {
  const TemporaryDirectory directory;
  for (const char* lines :
       {"wait = 30 min\n", "kill-after = soon\n", "acl = nobody\n",
        "permits = 2\nsupersede = yes\n", "dialect = simple\nmax-queue = 3\n",
        "dialect = kazoo\npermits = 3\n", "label = a\nlabel = b\n", "auth-file = /nowhere\n"}) {
    const std::string file = directory.Write("zklock.conf", lines);
    const Finished run =
        RunZklock({"exclusive", "--config", file, "/t/config/six", "--", "true"}, Exited(78));
    const Finished printed = RunZklock({"--print-config", "--config", file}, Exited(78));
    CHECK(printed.out.empty());
    CHECK(printed.err == run.err);
  }
}

TEST_CASE(
    "an option in a file that the argument --dialect simple excludes is named with its line") {
  const TemporaryDirectory directory;
  for (const char* line : {"supersede = yes\n", "max-queue = 3\n"}) {
    const std::string file = directory.Write("zklock.conf", line);
    CHECK_THAT(RunZklock({"exclusive", "--config", file, "--dialect", "simple", "/t/config/six",
                          "--", "true"},
                         Exited(78))
                   .err,
               Catch::StartsWith("zklock: " + file + ":1: --dialect simple has no queue"));
  }
}

TEST_CASE("a value that no file can express is a comment in the output of --print-config") {
  const TemporaryDirectory directory;
  for (const std::string label : {"a\nquiet = yes", "\x1b[2J", "\"a\" b", "a \" # b"}) {
    CAPTURE(label);
    const Finished finished = RunZklock({"--print-config", "--label", label}, Exited(0));
    CHECK_THAT(finished.out,
               Catch::Contains("\n# label = ") && Catch::Contains("cannot be set in a file"));
    CHECK(finished.out.find('\x1b') == std::string::npos);
    ChildOptions options =
        Zklock({"--print-config", "--config", directory.Write("zklock.conf", finished.out)});
    CHECK(Shown(options, "label") == "# label = # default");
    CHECK_THAT(Shown(options, "quiet"), Catch::StartsWith("quiet = no"));
  }
}

TEST_CASE("a relative file name in a file is relative to its directory, not to the caller's") {
  const TemporaryDirectory directory;
  const TemporaryDirectory callers;
  for (const TemporaryDirectory* one : {&directory, &callers}) {
    REQUIRE(chmod(one->Write("auth", "digest:us:tulip\n").c_str(), 0600) == 0);
    (void)one->Write("ca.pem", "");
  }
  const std::string lines = "auth-file = auth\ntls-ca = ./ca.pem\nevents = e\n";
  (void)callers.Write("zklock.conf", lines);
  ChildOptions options = WithUserFile(directory, {"--print-config"});
  std::string place = directory.Write("zklock.conf", lines);
  std::string prefix = directory.path() + "/";
  SECTION("the user's file") {}
  SECTION("a file named by its absolute path") {
    options.argv.insert(options.argv.end(), {"--config", place});
  }
  SECTION("a file named by a relative path") {
    place = "zklock.conf";
    prefix = "";
    options.argv.insert(options.argv.end(), {"--config", place});
  }
  SECTION("a pipe") {
    place = "/dev/stdin";
    prefix = "";
    options.argv.insert(options.argv.end(), {"--config", place});
    options.stdin_text = lines;
  }
  options.directory = callers.path();
  CHECK(Shown(options, "events") == "events = " + prefix + "e # " + place + ":3");
  CHECK(Shown(options, "auth-file") == "auth-file = " + prefix + "auth # " + place + ":1");
  CHECK(Shown(options, "tls-ca") == "tls-ca = " + prefix + "./ca.pem # " + place + ":2");
}

TEST_CASE("a byte order mark at the start of a file is skipped") {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "\xef\xbb\xbfwait = 3s\n");
  CHECK_THAT(Shown(Zklock({"--print-config", "--config", file}), "wait"),
             Catch::StartsWith("wait = 3s"));
}

TEST_CASE("a file with a TLS option never leads to a connection without TLS") {
  const TemporaryDirectory directory;
  for (const char* line : {"tls-cert = /no/such.pem", "tls-cert ="}) {
    const std::string file = directory.Write("zklock.conf", std::string("\n") + line + "\n");
    CHECK_THAT(
        RunZklock({"exclusive", "--config", file, "/t/config/five", "--", "true"}, Exited(78)).err,
        Catch::EndsWith("; see --tls-cert\n"));
  }
}

TEST_CASE("an argument overrides an option in a file that cannot be used with it") {
  const TemporaryDirectory directory;
  REQUIRE(!directory.Write("zklock.conf", "wait = 5m\nquiet = yes\n").empty());
  ChildOptions options =
      WithUserFile(directory, {"exclusive", "-n", "-v", "/t/config/two", "--", "true"});
  options.environment->push_back("ZKLOCK_SERVERS=" + TestServers());
  CHECK_FALSE(Run(options, Exited(0)).err.empty());
}

TEST_CASE("an unusable configuration is refused with 78, file and line, before any connection") {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& text, const std::string& option = "--no-nest") {
    const std::string file = directory.Write("bad.conf", text);
    CAPTURE(text);
    const Finished finished = Run(WithUserFile(directory, {"exclusive", option, "--config", file,
                                                           "/t/config/three", "--", "true"}),
                                  Exited(78));
    REQUIRE(Lines(finished.err).size() == 1);
    return finished.err.substr(0, finished.err.size() - 1);
  };
  const std::string place = "zklock: " + directory.Path("bad.conf");
  CHECK(refused("root = /r\nserver = a:1\n") ==
        place + ":2: unknown option 'server'; did you mean 'servers'?");
  CHECK(refused("wait = soon\n") ==
        place + ":1: --wait: invalid duration 'soon' (examples: 90, 1.5, 500ms, 1h30m)");
  CHECK(refused("servers = zk1:0\n").rfind(place + ":1: --servers 'zk1:0'", 0) == 0);
  CHECK(refused("\nstop-signal = NONE\n") ==
        place + ":2: --stop-signal: invalid signal 'NONE' (examples: TERM, USR1, 15)");
  CHECK(refused("publish-command = maybe\n") ==
        place + ":1: publish-command: invalid value 'maybe'; expected one of: yes, no");
  CHECK(refused("quiet = yes\nverbose = yes\n") ==
        place + ":1: --quiet and --verbose cannot be used together");
  CHECK(refused("quiet = true\nverbose = true\n") ==
        place + ":1: --quiet and --verbose cannot be used together");
  CHECK(refused("\nmin-interval = 1h\n", "--permits=2") ==
        place + ":2: --permits and --min-interval cannot be used together");
  CHECK(refused("label = \x1b[2Jx\n") == place + ":1: the line contains a control character");
}

TEST_CASE(
    "a --config that does not exist or cannot be read is an error; a default file that does not "
    "exist is not") {
  const TemporaryDirectory directory;
  Finished finished = RunZklock({"inspect", "--config", directory.Path("none.conf")});
  CHECK(finished.exit == Exited(78));
  CHECK(finished.err == "zklock: " + directory.Path("none.conf") +
                            ": cannot be read: No such file or directory; see --config\n");
  finished = RunZklock({"inspect", "--config", directory.path()});
  CHECK(finished.exit == Exited(78));
  CHECK(finished.err ==
        "zklock: " + directory.path() + ": cannot be read: Is a directory; see --config\n");
  Run(WithUserFile(directory, {"--print-config"}), Exited(0));
}

TEST_CASE("a user's file that cannot be read is ignored, and -v and --print-config report it") {
  const TemporaryDirectory directory;
  const std::string home = directory.Path("home");
  REQUIRE(mkdir(home.c_str(), 0700) == 0);
  REQUIRE(!directory.Write("home/zklock.conf", "no setting\n").empty());
  const std::string file = home + "/zklock.conf";
  std::string why = "Permission denied";
  ChildOptions options = Zklock({});
  SECTION("a directory of another user") {
    AsAnotherUser(directory, options);
    REQUIRE(chmod(home.c_str(), geteuid() == 0 ? 0700 : 0) == 0);
  }
  SECTION("a loop of symbolic links") {
    REQUIRE(unlink(file.c_str()) == 0);
    REQUIRE(symlink(file.c_str(), file.c_str()) == 0);
    why = "Too many levels of symbolic links";
  }
  CheckUnused(options, file, why);
  REQUIRE(chmod(home.c_str(), 0700) == 0);
}

TEST_CASE("a user's file that belongs to another user is not used") {
  const TemporaryDirectory directory;
  const std::string file = directory.Path("zklock.conf");
  ChildOptions options = Zklock({});
  if (geteuid() == 0) {
    REQUIRE(!directory.Write("zklock.conf", "no setting\n").empty());
    REQUIRE(chown(file.c_str(), kNobody, kNobody) == 0);
  } else {
    // In that namespace, root's files belong to an unknown user.
    REQUIRE(symlink("/etc/passwd", file.c_str()) == 0);
    options.argv = {"/usr/bin/unshare", "--user", "--map-root-user", Binary()};
  }
  const std::string why = (geteuid() == 0 ? file : "/") + " belongs to another user";
  SECTION("a plain file") { CheckUnused(options, file, why); }
  SECTION("but it is used if --config names it") {
    options.argv.insert(options.argv.end(), {"inspect", "--config", file});
    Run(options, Exited(78));
  }
  if (geteuid() != 0) return Skip("root, for a FIFO of another user");
  SECTION("a FIFO without a writer does not block") {
    REQUIRE(unlink(file.c_str()) == 0);
    REQUIRE(mkfifo(file.c_str(), 0666) == 0);
    REQUIRE(chown(file.c_str(), 1, 1) == 0);
    CheckUnused(options, file, why);
  }
  SECTION("in a directory of that user, whose link leads to a file of root") {
    // It could be a file in /proc whose text that user chooses.
    const std::string home = directory.Path("home");
    REQUIRE(mkdir(home.c_str(), 0755) == 0);
    REQUIRE(symlink("/etc/hostname", (home + "/zklock.conf").c_str()) == 0);
    REQUIRE(chown(home.c_str(), kNobody, kNobody) == 0);
    CheckUnused(options, home + "/zklock.conf", home + " belongs to another user");
  }
  SECTION("through a link of that user in a world-writable directory") {
    const std::string shared = directory.Path("shared");
    REQUIRE(mkdir(shared.c_str(), 0755) == 0);
    REQUIRE(chmod(shared.c_str(), 01777) == 0);
    const std::string link = shared + "/zklock.conf";
    REQUIRE(symlink("/dev/zero", link.c_str()) == 0);
    REQUIRE(lchown(link.c_str(), kNobody, kNobody) == 0);
    CheckUnused(options, link, link + " belongs to another user");
  }
}

TEST_CASE("a user's file that others may change, or that is not a plain file, is an error") {
  const TemporaryDirectory directory;
  REQUIRE(mkdir(directory.Path("home").c_str(), 0700) == 0);
  const std::string file = directory.Path("home/zklock.conf");
  std::string expected = file + ": not safe to use: others may write to " + file +
                         "; see chmod(1), or name it with --config";
  SECTION("the file") {
    REQUIRE(!directory.Write("home/zklock.conf", "label = x\n").empty());
    REQUIRE(chmod(file.c_str(), 0666) == 0);
  }
  SECTION("its directory") {
    REQUIRE(!directory.Write("home/zklock.conf", "label = x\n").empty());
    REQUIRE(chmod(directory.Path("home").c_str(), 0777) == 0);
    expected = file + ": not safe to use: others may write to " + directory.Path("home") +
               "; see chmod(1), or name it with --config";
  }
  SECTION("an endless device") {
    REQUIRE(symlink("/dev/zero", file.c_str()) == 0);
    expected = file + ": not a regular file; see --config";
  }
  SECTION("a FIFO") {
    REQUIRE(mkfifo(file.c_str(), 0600) == 0);
    expected = file + ": not a regular file; see --config";
  }
  SECTION("a directory") {
    REQUIRE(symlink(GENERATE(".", "/"), file.c_str()) == 0);
    expected = file + ": cannot be read: Is a directory; see --config";
  }
  SECTION("a large file") {
    REQUIRE(!directory.Write("home/zklock.conf", std::string(65 * 1024, '#')).empty());
    expected = file + ": larger than 64 KiB; see --config";
  }
  ChildOptions options = Zklock({"exclusive", NewLock("config"), "--", "true"});
  options.also_environment = {"XDG_CONFIG_HOME=" + directory.Path("home"), "ZKLOCK_CONFIG="};
  CHECK(Run(options, Exited(78)).err == "zklock: " + expected + "\n");
}

TEST_CASE("a user's file that a group may write to is used only if the group is the user's own") {
  if (!CanReplaceAccounts()) return Skip("root and mount namespaces");
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "label = mine\n");
  REQUIRE(chmod(file.c_str(), 0664) == 0);
  const auto run = [&](const std::string& passwd, const std::string& group) {
    (void)directory.Write("passwd", "root:x:0:0::/root:/bin/sh\n" + passwd);
    (void)directory.Write("group", "users:x:100:\n" + group);
    ChildOptions options = WithUserFile(directory, {"--print-config"});
    WithAccounts(directory, options);
    return Run(options);
  };
  using Accounts = std::vector<std::pair<std::string, std::string>>;
  const std::string users = "daemon:x:1:1::/:/bin/false\n";
  const std::string own = "root:x:0:\n";
  for (const auto& [passwd, group] : Accounts{{users, own},
                                              {users, "root:x:0:root\n"},
                                              {users + "toor:x:0:0::/root:/bin/sh\n", own}}) {
    CAPTURE(passwd, group);
    const Finished finished = run(passwd, group);
    CAPTURE(finished.err);
    CHECK(finished.exit == Exited(0));
    CHECK_THAT(finished.out, Catch::Contains("= mine"));
  }
  for (const auto& [passwd, group] :
       Accounts{{users + "mallory:x:1000:0::/:/bin/sh\n", own},  // her primary group
                {users, "root:x:0:mallory\n"},
                {users, own + "wheel:x:0:mallory\n"},
                {users, "wheel:x:0:\n"},
                {users, ""}}) {
    CAPTURE(passwd, group);
    const Finished finished = run(passwd, group);
    CHECK(finished.exit == Exited(78));
    CHECK(finished.err == "zklock: " + file + ": not safe to use: others may write to " + file +
                              "; see chmod(1), or name it with --config\n");
  }
}

/// Gives the user nobody these permissions for `file`, as setfacl(1) does. Returns false if the
/// file system has no ACLs.
bool AllowNobody(const std::string& file, std::uint16_t permissions) {
  struct Entry {
    std::uint16_t tag;
    std::uint16_t permissions;
    std::uint32_t id;
  };
  // struct posix_acl_xattr_header, and its entries: the owner, nobody, the group, mask, others
  const struct {
    std::uint32_t version = 2;
    std::array<Entry, 5> entries;
  } acl = {
      .entries = {
          {{1, 6, ~0U}, {2, permissions, 65534}, {4, 4, ~0U}, {0x10, 6, ~0U}, {0x20, 4, ~0U}}}};
  return setxattr(file.c_str(), "system.posix_acl_access", &acl, sizeof acl, 0) == 0;
}

TEST_CASE("a user's file with an ACL is not used if the ACL lets others write") {
  if (!CanReplaceAccounts()) return Skip("root and mount namespaces");
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "label = mine\n");
  if (!AllowNobody(file, 4)) return Skip("a file system with ACLs");
  (void)directory.Write("passwd", "root:x:0:0::/root:/bin/sh\n");
  (void)directory.Write("group", "root:x:0:\n");
  ChildOptions options = WithUserFile(directory, {"--print-config"});
  WithAccounts(directory, options);
  Run(options, Exited(0));
  REQUIRE(AllowNobody(file, 6));
  CHECK_THAT(Run(options, Exited(78)).err, Catch::Contains("others may write to " + file));
}

TEST_CASE("a file that replaces the user's file after the check is checked as well") {
  if (!CanReplaceAccounts()) return Skip("root and mount namespaces");
  const TemporaryDirectory directory;
  const std::string file = directory.Write("zklock.conf", "label = mine\n");
  // A group may write to the file, so zklock opens the accounts, which blocks until this test
  // releases its file lease.
  REQUIRE(chmod(file.c_str(), 0664) == 0);
  REQUIRE(!directory.Write("group", "root:x:0:\n").empty());
  const std::string passwd = directory.Write("passwd", "root:x:0:0::/root:/bin/sh\n");
  const std::string other = directory.Write("other.conf", "label = hers\n");
  REQUIRE(chown(other.c_str(), 65534, 65534) == 0);

  sigset_t lease_signal;
  sigemptyset(&lease_signal);
  sigaddset(&lease_signal, SIGIO);
  REQUIRE(sigprocmask(SIG_BLOCK, &lease_signal, nullptr) == 0);
  const UniqueFd lease(open(passwd.c_str(), O_RDWR | O_CLOEXEC));
  if (fcntl(lease.get(), F_SETLEASE, F_WRLCK) != 0) return Skip("a file system with leases");
  ChildOptions options = WithUserFile(directory, {"--print-config"});
  WithAccounts(directory, options);
  Child child = Child::Start(options);
  const timespec patience{kPatience.count(), 0};
  REQUIRE(sigtimedwait(&lease_signal, nullptr, &patience) == SIGIO);
  REQUIRE(rename(other.c_str(), file.c_str()) == 0);
  REQUIRE(fcntl(lease.get(), F_SETLEASE, F_UNLCK) == 0);

  CHECK(child.Wait() == Exited(0));
  CHECK_THAT(child.out(), !Catch::Contains("hers"));
  CHECK_THAT(child.out(),
             Catch::Contains(file + ": not used: " + file + " belongs to another user"));
}

TEST_CASE("a user's file may be a link to their own file elsewhere") {
  const TemporaryDirectory directory;
  REQUIRE(mkdir(directory.Path("home").c_str(), 0700) == 0);
  REQUIRE(mkdir(directory.Path("dotfiles").c_str(), 0755) == 0);
  REQUIRE(!directory.Write("dotfiles/zklock.conf", "label = mine\n").empty());
  const std::string target = GENERATE("../dotfiles/./zklock.conf", "absolute");
  const std::string to = target == "absolute" ? directory.Path("dotfiles/zklock.conf") : target;
  REQUIRE(symlink(to.c_str(), directory.Path("home/zklock.conf").c_str()) == 0);
  ChildOptions options = Zklock({"--print-config"});
  options.also_environment = {"XDG_CONFIG_HOME=" + directory.Path("home"), "ZKLOCK_CONFIG="};
  CHECK_THAT(Shown(options, "label"), Catch::StartsWith("label = mine"));
}

#ifndef ZKLOCK_SANITIZED  // the sanitizers need descriptors, too
TEST_CASE("with too few descriptors zklock exits with 71 and does not blame the configuration") {
  const std::string file = GENERATE("/dev/null", "/etc/zklock.conf");
  Words reports;
  for (int limit = 4; limit < 12; ++limit) {  // from too few to load zklock up to enough
    ChildOptions options = Zklock({"--print-config"});
    const std::string descriptors = "--nofile=" + std::to_string(limit);
    options.argv.insert(options.argv.begin(), {"/usr/bin/prlimit", descriptors});
    // The system's file is opened first, whether it exists or not.
    if (file != "/dev/null") options.also_environment = {"ZKLOCK_CONFIG="};
    const Finished finished = Run(options);
    if (finished.exit == Exited(71)) reports.push_back(finished.err);
    CAPTURE(limit, finished.err);
    CHECK(finished.exit != Exited(78));
  }
  const std::string expected = "zklock: " + file + ": Too many open files; see ulimit -n\n";
  CHECK(std::count(reports.begin(), reports.end(), expected) > 0);
}
#endif

TEST_CASE("the message about a bad value in the environment names the variable") {
  ChildOptions options = Zklock({"exclusive", "/t/config/four", "--", "true"});
  options.environment->push_back("ZKLOCK_CONNECT_TIMEOUT=soon");
  const Finished finished = Run(options, Exited(64));
  CHECK(Lines(finished.err).front() ==
        "zklock: --connect-timeout: invalid duration 'soon' (examples: 90, 1.5, 500ms, 1h30m) "
        "(from $ZKLOCK_CONNECT_TIMEOUT)");
}

TEST_CASE("a file can set every option except those for a single run") {
  std::set<std::string> settable;
  for (const std::string& line : Lines(RunZklock({"--print-config"}).out)) {
    const std::size_t name = line.starts_with("# ") ? 2 : 0;
    settable.insert(line.substr(name, line.find(' ', name) - name));
  }
  std::set<std::string> options;
  const std::string help = RunZklock({"exclusive", "--help"}).out;
  const std::regex option("(?:^|\n) +(?:-[a-zA-Z],)?--([a-z-]+)");
  for (std::sregex_iterator it(help.begin(), help.end(), option), end; it != end; ++it) {
    options.insert((*it)[1]);
  }
  for (const char* single_run : {"help", "config", "nonblock", "no-nest", "any", "also-read",
                                 "also-write", "hold", "owner-pid", "on-lost-signal", "reserve",
                                 "resume", "for", "reason", "preempt", "dry-run", "take"}) {
    CAPTURE(single_run);
    CHECK(options.erase(single_run) == 1);
  }
  CHECK(settable == options);
}

}  // namespace zklock::test
