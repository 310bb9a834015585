#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/hold/hold_script.h"
#include "cli/inspect/inspect_output.h"
#include "support/contender_names.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

using nlohmann::json;

/// Checks that there are no control sequences and no characters that a terminal does not show.
void CheckHarmless(const std::string& text) {
  CAPTURE(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    CHECK((byte >= 0x20 || byte == '\n'));
    CHECK(byte != 0x7f);
    // C1 controls in UTF-8, then the right-to-left override.
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    CHECK_FALSE((byte == 0xc2 && next < 0xa0));
    CHECK(text.compare(i, 3, "\u202e") != 0);
  }
}

TEST_CASE("a lock that does not exist is free") {
  const std::string lock = NewLock("inspect");
  CHECK(Inspect({lock}) == lock + ": free (it does not exist)\n");
  CHECK(RunZklock({"inspect", "-q", lock}).exit == Exited(0));
  CHECK(InspectJson(lock)[0]["held"] == false);
  CHECK(InspectJson(lock)[0]["exists"] == false);
  CHECK(Inspect({"--history", lock}) == lock + ": no run in its history (it does not exist)\n");
  CHECK(Inspect({"--root", lock}) == lock + ": free (it does not exist)\n\nno locks in use below " +
                                         lock + " (--root)\nzklock inspect / shows all locks\n");
}

TEST_CASE("inspect says that the chroot does not exist") {
  const std::string chroot = "/" + NewLock("chroot").substr(3);
  const auto inspect = [&](Words words) {
    words.insert(words.begin(), "inspect");
    words.insert(words.end(), {"-z", TestServers() + chroot, "/jobs/x"});
    return RunZklock(words);
  };
  const std::string missing =
      "the chroot " + chroot + " does not exist, so no lock in it is held; check --servers";
  for (const Words& form : {Words{}, {"--json"}, {"--dot"}, {"--prometheus"}, {"--history"}}) {
    CAPTURE(form);
    const Finished finished = inspect(form);
    CHECK(finished.exit == Exited(0));
    CHECK(finished.err == "zklock: " + missing + "\n");
  }
  for (const Words& form : {Words{"--all", "--yes"}, {"--reserve", "r"}, {}}) {
    CAPTURE(form);
    Words words{"release", "-z", TestServers() + chroot, "/jobs/x"};
    words.insert(words.end(), form.begin(), form.end());
    const Finished finished = RunZklock(words);
    CHECK(finished.exit == Exited(75));
    CHECK(finished.err == "zklock: " + missing + "\n");
  }
  const Finished check = inspect({"--check"});
  CHECK(check.exit == Exited(3));
  CHECK_THAT(check.out, Catch::StartsWith("UNKNOWN - " + missing + "; /jobs/x does not exist | "));
  // A run creates the chroot.
  CHECK(RunZklock({"exclusive", "-z", TestServers() + chroot, "/jobs/y", "--", "true"}).exit ==
        Exited(0));
  CHECK(inspect({}).err.empty());
  CHECK(inspect({"--check"}).exit == Exited(0));
}

TEST_CASE("a queue is shown with its holders and waiters and their metadata") {
  const std::string lock = NewLock("inspect");
  Child holder = StartHolder({"write", "--label", "nightly"}, lock);
  Child reader = StartWaiter({"read"}, lock);
  const std::string text = Inspect({lock});
  CHECK_THAT(text, Catch::StartsWith(lock + ": held by 1, 1 waiting\n"));
  CHECK_THAT(text, Catch::Contains("  nightly  ") && Catch::EndsWith("\n2 waits for 1\n"));
  CHECK(RunZklock({"inspect", "-q", lock}).exit == Exited(75));
  CHECK(RunZklock({"inspect", "-q", lock}).out.empty());

  const json found = InspectJson(lock)[0];
  CHECK(found["kind"] == "readwrite");
  CHECK(found["lastRun"] == nullptr);
  REQUIRE(found["contenders"].size() == 2);
  CHECK(found["contenders"][0]["pid"] == holder.pid());
  CHECK(found["contenders"][0]["label"] == "nightly");
  CHECK(found["contenders"][0]["mode"] == "write");
  CHECK(found["contenders"][0]["sinceExact"] == true);
  CHECK(found["contenders"][1]["pid"] == reader.pid());
  CHECK(found["contenders"][1]["waitsFor"] == found["contenders"][0]["name"]);
  const Znode znode =
      Tree().Get(lock + "/" + found["contenders"][0]["name"].get<std::string>()).value();
  CHECK(found["contenders"][0]["token"] == std::to_string(znode.created_zxid));
}

TEST_CASE("a path is shown with one line for each lock in use below it") {
  const std::string root = NewLock("inspect");
  Child first = StartHolder(root + "/a/b");
  Child second = StartHolder(root + "/c");
  CHECK(RunZklock({"exclusive", root + "/free", "--", "true"}).exit == Exited(0));
  const std::string text = Inspect({root});
  const Words lines = Lines(text);
  REQUIRE(lines.size() == 5);
  CHECK_THAT(lines[1], Catch::StartsWith(root + "/a/b  "));
  CHECK_THAT(lines[2], Catch::StartsWith(root + "/c  "));
  CHECK(lines[4] == "2 locks in use below " + root);
  CHECK(InspectJson(root).size() == 2);
  CHECK(RunZklock({"inspect", "-q", root}).exit == Exited(75));
}

TEST_CASE("inspect -q does not report a lock as free if the caller cannot list it") {
  const std::string root = NewLock("hidden");
  Tree tree;
  const Child holder = StartHolder(root + "/tree/x");
  tree.SetAcl(root + "/tree/x", kAdmin);
  const Child permit = StartHolder({"exclusive", "--permits", "2"}, root + "/semaphore");
  tree.SetAcl(root + "/semaphore/leases", kAdmin);
  for (const std::string path : {"/tree", "/semaphore"}) {
    const Finished quiet = RunZklock({"inspect", "-q", root + path});
    CHECK(quiet.exit == Exited(77));
    CHECK_THAT(quiet.err, Catch::StartsWith("zklock: not authorised to list " + root + path + "/"));
    CHECK(quiet.out.empty());
  }
  const Child readable = StartHolder(root + "/tree/readable");
  CHECK(RunZklock({"inspect", "-q", root + "/tree"}).exit == Exited(75));
}

TEST_CASE("nothing that others write into a lock can control the terminal or break the JSON") {
  const std::string lock = NewLock("hostile");
  Tree tree;
  const std::string escapes = "\x1b[2J\x1b]0;gotcha\x07\u202e\u009b31m\x7f";
  const Words data = {
      "{\"host\":\"h" + escapes + "\",\"user\":\"\\u001b[31m\\u202e\",\"label\":\"\\u0000\"}",
      "\xff\xfe\xc3(",
      std::string(1000000, 'x'),
      std::string(4000, '['),
      "{\"host\":" + std::string(1000, '[') + std::string(1000, ']') + "}",
      "{\"pid\":1e999}",
      "{\"pid\":-1,\"label\":\"\\ud800\",\"command\":[\"x\"]}",
      "{\"host\":\"" + std::string(4000, 'h') + "\"}"};
  tree.Create(lock, ZnodeKind::kPersistent, escapes);
  for (const std::string& text : data) {
    tree.Create(lock + "/" + kZklockLock, ZnodeKind::kEphemeralSequential, text);
    tree.Create(lock + "/" + kCuratorLock, ZnodeKind::kEphemeralSequential, text);
    tree.Create(lock + "/" + kKazooLock, ZnodeKind::kEphemeralSequential, text);
  }
  // The servers reject most control characters in names.
  tree.Create(lock + "/\u202eevil \"quoted\" \\n\u200b-lock-", ZnodeKind::kEphemeralSequential);
  tree.Create(lock + "/\u202econfig");

  for (const Words& form : {Words{}, Words{"-v"}, Words{"--json"}, Words{"--dot"}}) {
    Words arguments = form;
    arguments.push_back(lock);
    CheckHarmless(Inspect(arguments));
    arguments.back() = lock.substr(0, lock.rfind('/'));
    CheckHarmless(RunZklock([&] {
                    Words all{"inspect"};
                    all.insert(all.end(), arguments.begin(), arguments.end());
                    return all;
                  }())
                      .out);
  }
  CHECK(InspectJson(lock)[0]["contenders"].size() == 3 * data.size() + 1);
}

TEST_CASE("a long queue is shown in full") {
  const std::string lock = NewLock("long");
  Tree tree;
  tree.Create(lock);
  constexpr std::size_t kLong = 300;
  for (std::size_t i = 0; i < kLong; ++i) {
    tree.Create(lock + "/" + kCuratorLock, ZnodeKind::kEphemeralSequential, "10.0.0.1");
  }
  const Words lines = Lines(Inspect({lock}));
  CHECK(lines.size() == 3 + kLong + 2);
  CHECK(lines[0] == lock + ": held by 1, 299 waiting");
  CHECK(lines.back() == "2 to 300 wait, each for the one before it");
  CHECK(InspectJson(lock)[0]["contenders"].size() == kLong);
}

TEST_CASE("a closed pipe ends the output, and a slow reader gets all of it") {
  const std::string lock = NewLock("slow");
  Tree tree;
  tree.Create(lock);
  for (int i = 0; i < 400; ++i) {
    tree.Create(lock + "/" + kZklockLock, ZnodeKind::kEphemeralSequential,
                "{\"label\":\"" + std::string(1000, 'x') + "\"}");
  }
  ChildOptions options = Zklock({"inspect", "--json", lock});
  SECTION("a slow reader") {
    options.argv = {"sh",
                    "-c",
                    "exec 3<&0; \"$0\" \"$@\" | { read first; echo more; read go <&3; wc -l; }",
                    Binary(),
                    "inspect",
                    "--json",
                    lock};
    options.keep_stdin = true;
    Child child = Child::Start(options);
    CHECK(child.ReadLine() == "more");
    child.CloseInput();
    CHECK(child.ReadLine() == "2");
    CHECK(child.Wait() == Exited(0));
  }
  SECTION("no reader") {
    options.argv = {"bash",   "-c",      "\"$0\" \"$@\" | true; exit ${PIPESTATUS[0]}",
                    Binary(), "inspect", "--json",
                    lock};
    const Finished finished = Run(options);
    CHECK(finished.exit == Exited(141));
    CHECK(finished.err.empty());
  }
}

TEST_CASE("two nested callers in opposite orders are shown as a deadlock") {
  const std::string root = NewLock("deadlock");
  const auto nested = [&](const std::string& outer, const std::string& inner) {
    ChildOptions options = Zklock({"exclusive", root + outer, "--", "sh", "-c",
                                   "echo held; read go; exec \"$0\" exclusive -v \"$1\" -- true",
                                   Binary(), root + inner});
    options.keep_stdin = true;
    return Child::Start(options);
  };
  Child first = nested("/a", "/b");
  CHECK(first.ReadLine() == "held");
  Child second = nested("/b", "/a");
  CHECK(second.ReadLine() == "held");
  CHECK_THAT(Inspect({"--dot", root}), !Catch::Contains("red"));
  first.Write("\n");
  first.ReadErrUntil("waiting for");
  CHECK_THAT(Inspect({"--dot", root}), !Catch::Contains("red"));
  CHECK_THAT(Inspect({root}), !Catch::Contains("deadlock:"));
  CHECK_THAT(Inspect({root + "/b"}), !Catch::Contains("deadlock:"));
  CHECK(RunZklock({"inspect", "--check", root}).exit == Exited(0));
  second.Write("\n");
  second.ReadErrUntil("waiting for");
  const std::string graph = Inspect({"--dot", root});
  CHECK_THAT(graph, Catch::StartsWith("digraph") && Catch::Contains("1 deadlock, in red"));
  // Two locks, each with a holder and a waiter: four edges.
  std::size_t red = 0;
  for (const std::string& line : Lines(graph)) {
    if (line.find("->") != std::string::npos && line.find("color=red") != std::string::npos) ++red;
  }
  CHECK(red == 4);
  // All other output about several locks names the deadlock too.
  const auto holds = [&](const Child& child, const std::string& lock) {
    return ":" + std::to_string(child.pid()) + " holds " + root + lock;
  };
  CHECK_THAT(Inspect({root}), Catch::Contains("\ndeadlock: these wait for each other\n") &&
                                  Catch::Contains(holds(first, "/a") + "\n") &&
                                  Catch::Contains(holds(second, "/b") + "\n"));
  // The output for one queue names it too: the waiter in it refers to the other.
  for (const char* one : {"/a", "/b"}) {
    CHECK_THAT(Inspect({root + one}),
               Catch::Contains("\n\ndeadlock: these wait for each other\n") &&
                   Catch::Contains(holds(first, "/a") + "\n") &&
                   Catch::Contains(holds(second, "/b") + "\n"));
  }
  for (const Words& locks : {Words{root}, Words{root + "/a", root + "/b"}}) {
    Words words = {"inspect", "--check"};
    words.insert(words.end(), locks.begin(), locks.end());
    const Finished check = RunZklock(words);
    CHECK(check.exit == Exited(2));
    CHECK_THAT(check.out, Catch::StartsWith("CRITICAL - deadlock: ") &&
                              Catch::Contains(holds(first, "/a") + ", ") &&
                              Catch::Contains(holds(second, "/b") + "; each waits for the other"));
  }
  CHECK_THAT(Inspect({"--prometheus", root}),
             Catch::Contains("zklock_deadlocked{lock=\"" + root + "/a\"} 2\n") &&
                 Catch::Contains("zklock_deadlocked{lock=\"" + root + "/b\"} 2\n"));
}

TEST_CASE("a run that waits for any of several locks is deadlocked only if all of them are") {
  const std::string root = NewLock("any");
  // Creates a contender whose data names the contenders it runs under, and the other LOCKs it waits
  // for.
  const auto join = [&](Tree& session, const std::string& lock, const Words& under = {},
                        const Words& any = {}) {
    json data = {{"host", "web1"}, {"pid", 4242}, {"command", "train.sh"}};
    data["under"] = under;
    if (!any.empty()) data["any"] = any;
    return session.Create(root + lock + "/web1-" + kUuid + "-lock-",
                          ZnodeKind::kEphemeralSequential, data.dump());
  };
  Tree outer;
  Tree holder_of_a;
  Tree holder_of_b;
  Tree other;
  Tree run;
  const std::string c = join(outer, "/c");
  const std::string a = join(holder_of_a, "/a");
  const std::string b = join(holder_of_b, "/b");
  const std::string e = join(other, "/e");
  join(run, "/a", {c}, {root + "/b"});
  join(run, "/b", {c}, {root + "/a"});

  CHECK_THAT(Inspect({root + "/a"}),
             Catch::Contains("  train.sh\n") && Catch::Contains("  any of 2: train.sh\n"));
  const json contenders = InspectJson(root + "/a")[0]["contenders"];
  CHECK(contenders[0]["any"] == nullptr);
  CHECK(contenders[1]["any"] == json({root + "/b"}));
  const Finished in_chroot = RunZklock({"inspect", "--json", "-z", TestServers() + root, "/a"});
  CHECK(json::parse(in_chroot.out)[0]["contenders"][1]["any"] == json({"/b"}));

  const auto check_is_free = [&] {
    for (const std::string& path : {root, root + "/a", root + "/c"}) {
      CHECK_THAT(Inspect({path}), !Catch::Contains("deadlock"));
    }
    CHECK_THAT(Inspect({"--dot", root}), !Catch::Contains("red"));
    CHECK(RunZklock({"inspect", "--check", root}).exit == Exited(0));
  };
  // The holder of a waits for the holder of c, whose command waits for a or b.
  join(holder_of_a, "/c", {a});
  check_is_free();
  // The holder of another lock claims to be part of that run.
  Tree stranger;
  join(stranger, "/d", {c}, {root + "/a", root + "/b"});
  // The holders of b and e wait for each other.
  join(holder_of_b, "/e", {b});
  check_is_free();
  join(other, "/b", {e});
  for (const std::string& path : {root, root + "/a", root + "/c"}) {
    CAPTURE(path);
    const std::string text = Inspect({path});
    for (const char* lock : {"/a", "/b", "/c", "/e"}) {
      CHECK_THAT(text, Catch::Contains("web1:4242 holds " + root + lock + "\n"));
    }
  }
  const std::string graph = Inspect({"--dot", root});
  CHECK_THAT(graph, Catch::Contains("2 deadlocks, in red"));
  std::size_t red = 0;
  for (const std::string& line : Lines(graph)) {
    if (line.find("\"or\"") != std::string::npos && line.find("red") != std::string::npos) ++red;
  }
  CHECK(red == 1);
  CHECK(RunZklock({"inspect", "--check", root}).exit == Exited(2));
}

TEST_CASE("without a terminal --watch prints a JSON line for each change") {
  const std::string lock = NewLock("watch");
  Child watcher = Child::Start(Zklock({"inspect", "--watch", lock}));
  std::string all = watcher.ReadLine() + "\n";
  CHECK(json::parse(all)["held"] == false);
  {
    Child holder = StartHolder(lock);
    std::string line = watcher.ReadLine();
    while (json::parse(line)["held"] == false) line = watcher.ReadLine();
    CHECK(json::parse(line)["contenders"][0]["pid"] == holder.pid());
    all += line + "\n";
    holder.CloseInput();
    holder.Wait();
  }
  std::string line = watcher.ReadLine();
  while (json::parse(line)["held"] == true) line = watcher.ReadLine();
  CHECK(json::parse(line)["contenders"].empty());
  CheckSchema(all + line + "\n", {"--lines"});
  watcher.Signal(SIGINT);
  CHECK(watcher.Wait() == Exited(130));
  CHECK(watcher.err().empty());
}

TEST_CASE("--watch ends when its reader is gone, even if nothing changes") {
  const std::string lock = NewLock("gone");
  const Finished finished = Run(Script(
      lock, "{ $Z inspect --watch --json $L; echo $? >&2; } | head -n 1 >/dev/null; echo ended"));
  CHECK(finished.out == "ended\n");
  CHECK(finished.err == "141\n");
}

TEST_CASE("inspect ends as if by HUP if its terminal was closed before it started") {
  ChildOptions options = Zklock({"inspect", NewLock("gone")});
  options.prepare = [] {
    ResetSignals();
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    unlockpt(terminal);
    const int output = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    close(terminal);
    dup2(output, STDOUT_FILENO);
  };
  const Finished finished = Run(options, Exited(128 + SIGHUP));
  CHECK(finished.err.empty());
}

TEST_CASE("without a terminal --watch shows all contenders of a tree, as --json does") {
  auto [tree, above] = MadeLock("watch");
  tree.Create(above + "/l");
  for (int i = 0; i < 70; ++i) {
    tree.Create(above + "/l/" + kZklockLock, ZnodeKind::kEphemeralSequential);
  }
  Child watcher = Child::Start(Zklock({"inspect", "--watch", above}));
  CHECK(json::parse(watcher.ReadLine())["contenders"].size() == 70);
}

TEST_CASE("a watcher sees what changed while its server was away") {
  const std::string lock = NewLock("watch");
  ChildOptions options = Zklock({"inspect", "--watch", lock});
  Proxy proxy(TestServers());
  options.also_environment = {"ZKLOCK_SERVERS=" + proxy.address()};
  Child watcher = Child::Start(options);
  CHECK(json::parse(watcher.ReadLine())["held"] == false);
  const Child holder = StartHolder(lock);
  proxy.Cut();
  std::string line = watcher.ReadLine();
  while (json::parse(line)["held"] == false) line = watcher.ReadLine();
  CHECK(json::parse(line)["contenders"][0]["pid"] == holder.pid());
}

}  // namespace
}  // namespace zklock::test
