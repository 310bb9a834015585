// --progress, with and without a terminal.

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cli/text/printable.h"
#include "cli/zklock.h"

namespace zklock::test {
namespace {

constexpr const char* kEraseToEnd = "\x1b[K";
constexpr const char* kErased = "\r\x1b[K";

/// Starts `zklock WORDS LOCK -- sh -c 'echo first'` on a terminal of `columns`.
Child StartOnScreen(int columns, const std::string& words, const std::string& lock) {
  ChildOptions options = Zklock({});
  options.argv = {"sh", "-c",
                  "stty cols " + std::to_string(columns) + "; exec " + Binary() + " " + words +
                      " " + lock + " -- sh -c 'echo fir\"\"st'"};
  options.also_environment = {"TERM=xterm"};
  return Child::StartOnTerminal(std::move(options));
}

/// Returns each drawing of the live line.
Words Frames(const std::string& screen) {
  Words frames;
  std::size_t end = 0;
  while ((end = screen.find(kEraseToEnd, end)) != std::string::npos) {
    const std::size_t begin = screen.rfind('\r', end) + 1;
    if (begin < end) frames.push_back(screen.substr(begin, end - begin));
    ++end;
  }
  return frames;
}

}  // namespace

TEST_CASE("the live line fits the terminal, and is erased before the command prints") {
  for (const int columns : {60, 80, 100}) {
    CAPTURE(columns);
    auto [lock, holder] = HoldNewLock("longer-than-the-terminal-is-wide");
    Child waiter = StartOnScreen(columns, "exclusive", lock);
    waiter.ReadUntil("zklock: waiting for ");
    // If there is no room for everything, the line keeps the holder and drops other words.
    const std::string before_time = columns >= 80 ? ": next in line, " : "…";
    waiter.ReadUntil(before_time);
    const std::string time = waiter.ReadUntil("s");
    waiter.ReadUntil("held by");
    do waiter.ReadUntil(before_time);
    while (waiter.ReadUntil("s") == time);  // until the displayed time advances
    waiter.ReadUntil(kEraseToEnd);
    holder.CloseInput();
    waiter.ReadUntil("first");
    const std::string& screen = waiter.out();
    CHECK_THAT(screen.substr(0, screen.rfind("first")), Catch::EndsWith(kErased));
    const Words frames = Frames(screen);
    REQUIRE(frames.size() >= 2);
    for (const std::string& frame : frames) {
      CHECK(cli::DisplayWidth(frame) <= static_cast<std::size_t>(columns) - 3);
      if (columns >= 80) CHECK_THAT(frame, Catch::StartsWith("zklock: waiting for "));
    }
    // The line leaves room for the ^C that the terminal echoes.
    CHECK(cli::DisplayWidth(frames.back()) == static_cast<std::size_t>(columns) - 3);
    CHECK_THAT(frames.back(), Catch::Contains("…"));
    CHECK(waiter.Wait() == Exited(0));
  }
}

TEST_CASE("under timeout, lines show the wait on a terminal") {
  auto [lock, holder] = HoldNewLock("timeout");
  ChildOptions options = Zklock({});
  options.argv = {"sh", "-c",
                  "timeout 60 " + Binary() + " exclusive " + lock + " -- echo first; exit $?"};
  options.also_environment = {"TERM=xterm"};
  Child waiter = Child::StartOnTerminal(std::move(options));
  waiter.ReadUntil("zklock: waiting for " + lock + ": next in line, ");
  waiter.ReadUntil("\r\n");
  holder.CloseInput();
  waiter.ReadUntil("first");
  CHECK(Frames(waiter.out()).empty());
  CHECK(waiter.Wait() == Exited(0));
}

TEST_CASE("Ctrl-C while the live line is shown leaves a clean line") {
  auto [lock, holder] = HoldNewLock("bar");
  Child waiter = StartOnScreen(80, "exclusive", lock);
  waiter.ReadUntil("held by");
  waiter.Write("\x03");
  waiter.ReadUntil("left the queue; the command was not run");
  // The line is erased at once, and again before the message, because the terminal may echo the ^C
  // in between.
  std::string before = waiter.out().substr(0, waiter.out().rfind("zklock: SIGINT"));
  for (const std::string last : {kErased, "^C", kErased}) {
    const bool is_last = before.ends_with(last);
    if (is_last) before.resize(before.size() - last.size());
    CHECK((is_last || last == "^C"));
  }
  CHECK(waiter.Wait() == Killed(SIGINT));
}

TEST_CASE("Ctrl-Z erases the live line, and fg draws it again") {
  auto [lock, holder] = HoldNewLock("bar");
  ChildOptions options = Zklock({});
  options.argv = {"bash", "--norc", "--noprofile", "-i"};
  options.also_environment = {"TERM=xterm", "HISTFILE=", "PS1="};
  Child shell = Child::StartOnTerminal(std::move(options));
  shell.Write("stty cols 80; PS1='rea''dy> '\n");
  shell.ReadUntil("ready> ");
  shell.Write(Binary() + " exclusive " + lock + " -- true\n");
  shell.ReadUntil("held by");
  shell.Write("\x1a");
  const std::string until_stopped = shell.ReadUntil("Stopped");
  // The shell's own message follows on an empty line.
  const std::size_t erased = until_stopped.rfind(kErased);
  REQUIRE(erased != std::string::npos);
  CHECK(until_stopped.find("in line", erased) == std::string::npos);
  shell.ReadUntil("ready> ");
  shell.Write("fg\n");
  shell.ReadUntil("next in line, ");
  holder.CloseInput();
  shell.ReadUntil("ready> ");
  CHECK(Tree().Children(lock).empty());
}

TEST_CASE("without a terminal a line names the holder, but not with --quiet or --progress none") {
  auto [lock, holder] = HoldNewLock("plain", {"exclusive", "--label", "x"});
  Child waiter = Child::Start(HolderOptions({"exclusive"}, lock));
  const std::string said = waiter.ReadErrUntil("\n");
  // zklock waits at most a second for the servers before it prints the line.
  CHECK_THAT(said, Catch::Matches("zklock: waiting for " + lock +
                                  R"(: next in line, \d+s(; held by sh \(pid )" +
                                  std::to_string(holder.pid()) + R"( on .*\) for .*)?\n)"));
  // The last waiter prints its line although the two silent ones have waited longer.
  Child quiet = Child::Start(HolderOptions({"exclusive", "-q"}, lock));
  Tree().WaitForChildren(lock, 3);
  Child none = Child::Start(HolderOptions({"exclusive", "--progress", "none"}, lock));
  Tree().WaitForChildren(lock, 4);
  Child last = Child::Start(HolderOptions({"exclusive", "--progress", "plain"}, lock));
  last.ReadErrUntil("3 waiting ahead");
  for (Child* one : {&holder, &waiter, &quiet, &none, &last}) {
    CHECK(Finish(*one) == Exited(0));
  }
  CHECK(quiet.err().empty());
  CHECK(none.err().empty());
}

TEST_CASE("--progress bar draws a live line without a terminal") {
  auto [lock, holder] = HoldNewLock("bar");
  Child waiter = Child::Start(HolderOptions({"exclusive", "--progress", "bar"}, lock));
  waiter.ReadErrUntil("zklock: waiting for ");
  waiter.ReadErrUntil(": next in line, ");
  const std::string time = waiter.ReadErrUntil("s");
  do waiter.ReadErrUntil(": next in line, ");
  while (waiter.ReadErrUntil("s") == time);  // until the displayed time advances
  holder.CloseInput();
  CHECK(Finish(waiter) == Exited(0));
  CHECK_THAT(waiter.err(), Catch::EndsWith(kErased));
}

}  // namespace zklock::test
