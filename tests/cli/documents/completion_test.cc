// The shell completions, tested in the shells themselves: on a terminal, with the tab key.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/zklock.h"
#include "support/peer.h"
#include "support/source.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

std::string Completions(const std::string& file) { return SourcePath("completions/") + file; }

std::string BinaryDirectory() { return Binary().substr(0, Binary().rfind('/')); }

/// An interactive shell on a terminal, with zklock's completion loaded.
class LineEditor {
 public:
  LineEditor(const Words& shell, const std::string& setup, const std::string& servers)
      : shell_(Start(shell, servers)) {
    shell_.Write(setup + "\n");
    shell_.Write("PS1='rea''dy> '\n");
    shell_.ReadUntil("ready> ");
  }
  void ChangeDirectory(const std::string& directory) {
    shell_.Write("cd " + directory + "\n");
    shell_.ReadUntil("ready> ");
  }
  /// Returns the words of the line after typing `typed` and the tab key, each in brackets.
  std::string AfterTab(const std::string& typed) {
    // Go to the start of the line (Ctrl-A), and turn the line into a command that prints it.
    shell_.Write(typed + "\t\x01printf 'li''ne:'; printf '[%s]' \n");
    shell_.ReadUntil("line:");
    const std::string line = shell_.ReadUntil("ready> ");
    return line.substr(0, line.rfind(']') + 1);
  }

 private:
  static Child Start(const Words& shell, const std::string& servers) {
    ChildOptions options;
    options.argv = shell;
    options.environment = PlainEnvironment();
    std::erase_if(*options.environment, [](const std::string& one) {
      return one.rfind("PATH=", 0) == 0 || one.rfind("TERM=", 0) == 0;
    });
    options.also_environment = {"ZKLOCK_SERVERS=" + servers,
                                "ZKLOCK_CONFIG=/dev/null",
                                "PATH=" + BinaryDirectory() + ":/usr/bin:/bin",
                                "TERM=dumb",
                                "PS1=",
                                "HISTFILE="};
    options.prepare = ResetSignals;
    return Child::StartOnTerminal(std::move(options));
  }
  Child shell_;
};

LineEditor Bash(const std::string& servers = TestServers()) {
  return {{"bash", "--norc", "--noprofile", "-i"}, "source " + Completions("zklock.bash"), servers};
}

LineEditor BashWithItsCompletions() {
  return {{"bash", "--norc", "--noprofile", "-i"},
          "source /usr/share/bash-completion/bash_completion; source " + Completions("zklock.bash"),
          TestServers()};
}

LineEditor Zsh(const std::string& servers = TestServers()) {
  return {{"zsh", "-f", "-i"},
          "bindkey -e; unsetopt zle_bracketed_paste; fpath=(" + Completions("") +
              " $fpath); autoload -Uz compinit; compinit -u -D",
          servers};
}

/// Returns the words that fish offers for a line, without their descriptions.
Words FishOffers(const std::string& line, const std::string& servers = TestServers()) {
  ChildOptions options;
  options.argv = {"fish", "--no-config", "-c",
                  "set -x PATH " + BinaryDirectory() + " $PATH; source " +
                      Completions("zklock.fish") + "; complete -C '" + line + "'"};
  options.environment = PlainEnvironment();
  options.also_environment = {"ZKLOCK_SERVERS=" + servers, "ZKLOCK_CONFIG=/dev/null"};
  const TemporaryDirectory home;  // fish wants to write there
  options.also_environment.push_back("HOME=" + home.path());
  const Finished finished = Run(options);
  CAPTURE(finished.err);
  CHECK(finished.err.empty());
  Words offers;
  for (const std::string& offer : Lines(finished.out)) {
    offers.push_back(offer.substr(0, offer.find('\t')));
  }
  return offers;
}

/// Creates a LOCK alone in its folder: listing the LOCKs of all other tests takes longer than a
/// completion waits.
std::string Made(Tree& tree) {
  std::string lock = NewLock("completion") + "/lock";
  tree.Create(lock);
  return lock;
}

/// A LOCK that exists, and a prefix of its path that no other LOCK has.
struct SomeLock {
  Tree tree;
  std::string lock = Made(tree);
  std::string start = lock.substr(0, lock.size() - 1);
};

/// Calls `offer` until it returns `expected`, and returns its last result: on a busy machine the
/// servers may take longer than the 300 ms that a completion waits for them.
template <typename T, typename F>
T Offered(const T& expected, F offer) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  T offered = offer();
  while (offered != expected && std::chrono::steady_clock::now() < until) offered = offer();
  return offered;
}

void CheckOurs(LineEditor shell) {
  const SomeLock some;
  CHECK(shell.AfterTab("zklock exc") == "[zklock][exclusive]");
  CHECK(shell.AfterTab("zklock try --publ") == "[zklock][try][--publish-command]");
  CHECK(shell.AfterTab("zklock read --on-lost w") == "[zklock][read][--on-lost][warn]");
  CHECK(shell.AfterTab("zklock read --stop-signal USR1 --desc") ==
        "[zklock][read][--stop-signal][USR1][--descendants]");
  CHECK(shell.AfterTab("zklock exclusive --config /etc/pass") ==
        "[zklock][exclusive][--config][/etc/passwd]");
  const auto check_lock = [&](const std::string& typed, const std::string& expected) {
    CHECK(Offered(expected, [&] { return shell.AfterTab(typed); }) == expected);
  };
  check_lock("zklock inspect " + some.start, "[zklock][inspect][" + some.lock + "]");
  check_lock("zklock exclusive -w 5 " + some.start,
             "[zklock][exclusive][-w][5][" + some.lock + "]");
  check_lock("zklock exclusive --root " + some.lock.substr(0, 2) + " " + some.start.substr(3),
             "[zklock][exclusive][--root][/t][" + some.lock.substr(3) + "]");
  CHECK(shell.AfterTab("zklock try /l -- basena") == "[zklock][try][/l][--][basename]");
  CHECK(shell.AfterTab("zklock try /l -- ls /etc/pass") ==
        "[zklock][try][/l][--][ls][/etc/passwd]");
}

/// Checks that `zklock try` and the tab key run nothing, with a `zklock` that prints `instruction`.
void CheckRunsNothing(const std::string& instruction) {
  CAPTURE(instruction);
  const TemporaryDirectory programs;
  const std::string program =
      programs.WriteProgram("zklock", "#!/bin/sh\ncat <<'END'\n" + instruction + "\nEND\n");
  const TemporaryDirectory empty;
  for (auto* const start : {Bash, Zsh}) {
    LineEditor shell = start(TestServers());
    shell.ChangeDirectory(empty.path());
    CHECK(shell.AfterTab(program + " try ") == "[" + program + "][try]");
    CHECK(std::filesystem::is_empty(empty.path()));
  }
}

}  // namespace

TEST_CASE("bash completes subcommands, options, values, LOCKs, files and the command") {
  CheckOurs(Bash());
  CHECK(Bash().AfterTab("zklock read --on-lost=w") == "[zklock][read][--on-lost=warn]");
  CHECK(Bash().AfterTab("zklock read -z zk1:2181 --desc") ==
        "[zklock][read][-z][zk1:2181][--descendants]");
}

TEST_CASE("bash with its own completions completes the command's options too") {
  CheckOurs(BashWithItsCompletions());
  CHECK(BashWithItsCompletions().AfterTab("zklock try /l -- chmod --recur") ==
        "[zklock][try][/l][--][chmod][--recursive]");
}

TEST_CASE("zsh completes subcommands, options, values, LOCKs, files and the command") {
  CheckOurs(Zsh());
  CHECK(Zsh().AfterTab("zklock try /l -- chmod --recur") ==
        "[zklock][try][/l][--][chmod][--recursive]");
}

TEST_CASE("zsh completes a LOCK with a character that separates or quotes") {
  const auto name = GENERATE(as<std::string>{}, "a:b", "a\\b", "a b");
  CAPTURE(name);
  Tree tree;
  const std::string above = Made(tree);
  const Child holder = StartHolder(above + "/" + name);
  const std::string completed = "[zklock][inspect][" + above + "/" + name + "]";
  CHECK(Offered(completed, [&] { return Zsh().AfterTab("zklock inspect " + above + "/a"); }) ==
        completed);
}

TEST_CASE("fish completes subcommands, options, values, LOCKs, files and the command") {
  const SomeLock some;
  CHECK(FishOffers("zklock exc") == Words{"exclusive"});
  CHECK(FishOffers("zklock try --publ") == Words{"--publish-command"});
  CHECK(FishOffers("zklock read --on-lost ") == Words{"stop", "warn"});
  CHECK(FishOffers("zklock exclusive --config /etc/hostn") == Words{"/etc/hostname"});
  const Words locks = {some.lock};
  CHECK(Offered(locks, [&] { return FishOffers("zklock inspect " + some.start); }) == locks);
  CHECK(FishOffers("zklock try /l -- basena") == Words{"basename"});
  CHECK(FishOffers("zklock try /l -- ls /etc/hostn") == Words{"/etc/hostname"});
}

TEST_CASE("with servers that do not answer, completion ends soon and prints nothing") {
  const Peer silent(Peer::Manner::kSaysNothing);
  CHECK(Bash(silent.address()).AfterTab("zklock inspect /t") == "[zklock][inspect][/t]");
  CHECK(FishOffers("zklock inspect /t", silent.address()).empty());
  const Finished finished =
      Run(With(Zklock({"--complete", "inspect", "/t"}), {"ZKLOCK_SERVERS=" + silent.address()}),
          Exited(0));
  CHECK(finished.out.empty());
  CHECK(finished.err.empty());
}

TEST_CASE("the LOCK of a semaphore is offered, but the znodes of its queue are not") {
  Tree tree;
  const std::string above = Made(tree);
  // LOCKs with these names.
  tree.Create(above + "/named/leases");
  tree.Create(above + "/named/locks");
  // One LOCK that is free, and one that is held.
  tree.Create(above + "/free/leases", ZnodeKind::kPersistent, "2");
  tree.Create(above + "/free/locks");
  Child holder = StartHolder({"exclusive", "--permits", "2"}, above + "/held");
  // The waiter has already created its permits, which exceed the limit.
  const Words take_four = {"exclusive", "--permits", "6", "--take", "4"};
  Child first = StartHolder(take_four, above + "/wanted");
  Child second = Child::Start(HolderOptions(take_four, above + "/wanted"));
  tree.WaitForChildren(above + "/wanted/leases", 8);

  const std::string all = above + "/free\tfree\n" + above + "/held\t1 of 2 permits used\n" + above +
                          "/named/leases\tfree\n" + above + "/named/locks\tfree\n" + above +
                          "/wanted\t4 of 6 permits used, 1 waiting\n";
  const ChildOptions options = Zklock({"--complete", "exclusive", above + "/"});
  CHECK(Offered(all, [&] { return Run(options).out; }) == all);
}

TEST_CASE(
    "a LOCK that keeps records of its runs is offered, but the znodes of the records are not") {
  Tree tree;
  const std::string above = Made(tree);
  for (const std::string record : {"/last-run", "/last-start"}) {
    tree.Create(above + "/free" + record);
    tree.Create(above + "/above" + record);
  }
  tree.Create(above + "/above/job");
  const std::string all =
      above + "/above\tfree\n" + above + "/above/job\tfree\n" + above + "/free\tfree\n";
  const ChildOptions options = Zklock({"--complete", "exclusive", above + "/"});
  CHECK(Offered(all, [&] { return Run(options).out; }) == all);
}

TEST_CASE("contenders and znodes above LOCKs are not offered as LOCKs") {
  Tree tree;
  const std::string lock = Made(tree);
  const std::string below = lock + "/below";
  tree.Create(below);
  Child holder = StartHolder(below);
  const std::string only = below + "\tin use\n";
  for (const std::string& typed : {lock + "/", lock}) {
    const ChildOptions options = Zklock({"--complete", "inspect", typed});
    CHECK(Offered(only, [&] { return Run(options).out; }) == only);
  }
}

TEST_CASE("a LOCK is offered with its number of users, and release offers no free LOCK") {
  Tree tree;
  const std::string above = Made(tree);
  tree.Create(above + "/free");
  const Child holder = StartHolder(above + "/held");
  const Child waiter = StartWaiter(above + "/held");
  const Child reader = StartHolder({"read"}, above + "/read");
  const Child another = StartHolder({"read"}, above + "/read");
  const Child writer = StartWaiter({"write"}, above + "/read");
  const std::string used =
      above + "/held\tin use, 1 waiting\n" + above + "/read\tin use by 2, 1 waiting\n";
  const ChildOptions release = Zklock({"--complete", "release", above + "/"});
  CHECK(Offered(used, [&] { return Run(release).out; }) == used);
  const std::string all = above + "/free\tfree\n" + used;
  const ChildOptions exclusive = Zklock({"--complete", "try", above + "/"});
  CHECK(Offered(all, [&] { return Run(exclusive).out; }) == all);
  CHECK(Zsh().AfterTab("zklock try " + above + "/f") == "[zklock][try][" + above + "/free]");
  CHECK(FishOffers("zklock try " + above + "/f") == Words{above + "/free"});
}

TEST_CASE("release --contender offers the names of the contenders in the queue") {
  auto [lock, holder] = HoldNewLock("complete");
  const Child waiter = StartWaiter(lock);
  Words names = Tree().Children(lock);
  std::sort(names.begin(), names.end());
  CHECK(Lines(RunZklock({"--complete", "release", lock, "--contender", ""}).out) == names);
  CHECK(Lines(RunZklock({"--complete", "release", lock, "--contender", names[1]}).out) ==
        Words{names[1]});
  CHECK(RunZklock({"--complete", "release", "--contender", ""}).out.empty());
}

TEST_CASE("LOCKs with characters that reorder or hide the line are not offered") {
  Tree tree;
  const std::string above = Made(tree);
  for (const char* const name : {"a\u202eb", "a\u2066b", "a\u200bb", "good"}) {
    tree.Create(above + "/" + name);
    tree.Create(above + "/" + name + "/x-lock-0000000001");
  }
  const std::string only = above + "/good\tin use\n";
  const ChildOptions options = Zklock({"--complete", "inspect", above + "/"});
  CHECK(Offered(only, [&] { return Run(options).out; }) == only);
}

TEST_CASE("a LOCK or contender that looks like an instruction to the shell is not offered") {
  Tree tree;
  const std::string above = Made(tree);
  const std::string for_bash = ":command a[$(touch pwned)]";
  const std::string for_zsh = ":command path[$(touch pwned)]?1:";
  tree.Create(above + "/" + for_bash);
  tree.Create(above + "/" + for_zsh);
  tree.Create(above + "/:files");
  tree.Create(above + "/--proxy-command=x");
  tree.Create(above + "/job/:command path[$(touch pwned)]+0000000001");
  tree.Create(above + "/job/x-lock-0000000002");
  const std::string locks = "job\tin use, 1 waiting\n";
  const Words of_root = {"--complete", "try", "--root", above};
  CHECK(Offered(locks, [&] { return Run(Zklock(of_root + Words{""})).out; }) == locks);
  CHECK(Run(Zklock(of_root + Words{":"})).out.empty());
  const std::string names = "x-lock-0000000002\n";
  const Words of_job = {"--complete", "release", above + "/job", "--contender", ""};
  CHECK(Offered(names, [&] { return Run(Zklock(of_job)).out; }) == names);
  // After a slash, or as the value in one word, the names are harmless.
  const std::string in_one_word = "--contender=:command path[$(touch pwned)]+0000000001\n";
  const Words one_word = {"--complete", "release", above + "/job", "--contender=:"};
  CHECK(Offered(in_one_word, [&] { return Run(Zklock(one_word)).out; }) == in_one_word);

  const TemporaryDirectory empty;
  for (auto* const start : {Bash, Zsh}) {
    LineEditor shell = start(TestServers());
    shell.ChangeDirectory(empty.path());
    (void)shell.AfterTab("zklock try --root " + above + " ");
    (void)shell.AfterTab("zklock try --root " + above + " :");
    (void)shell.AfterTab("zklock release " + above + "/job --contender ");
    CHECK(std::filesystem::is_empty(empty.path()));
  }
}

TEST_CASE("the shells take only a number as the position of the command") {
  CheckRunsNothing(":command a[$(touch pwned)]");
  CheckRunsNothing(":command path[$(touch pwned)]?1:");
  CheckRunsNothing(":command 1+path[$(touch pwned)]");
  CheckRunsNothing(":command ");
}

}  // namespace zklock::test
