#include "cli/reports/report_queue.h"

#include <catch2/catch.hpp>
#include <csignal>

namespace zklock::cli {
namespace {

ContenderView Holder() {
  ContenderView view;
  view.name = "b7-x-lock-0000000003";
  view.position = 1;
  view.program = protocol::Program::kZklock;
  return view;
}

}  // namespace

TEST_CASE("A contender is described as far as it is known") {
  ContenderView view = Holder();
  view.data = {.host = "b7", .user = "ci", .pid = 4242, .command = "dump", .label = "nightly"};
  CHECK(DescribeTarget("/l", view) ==
        "b7-x-lock-0000000003 holds /l (exclusive): user ci on b7, pid 4242, dump, "
        "label 'nightly'");
  view.data = {.host = "b7"};
  view.state = ContenderState::kWaiting;
  view.mode = protocol::Mode::kRead;
  CHECK(DescribeTarget("/l", view) == "b7-x-lock-0000000003 waits for /l (read): on b7");
}

TEST_CASE("The question asked before a release describes one contender, or counts several") {
  ContenderView holder = Holder();
  holder.data = {.host = "db2", .user = "root", .pid = 4242, .command = "dump", .label = "nightly"};
  holder.since_ms = 0;
  CHECK(ReleaseQuestion("/l", {holder}, /*force=*/false, 125'999) ==
        "end dump (pid 4242, root on db2, for 2m5s, 'nightly') and release /l? [y/N] ");
  CHECK(ReleaseQuestion("/l", {holder}, /*force=*/true, 0) ==
        "take /l from dump (pid 4242, root on db2, for 0s, 'nightly'), after which two may run "
        "together? [y/N] ");
  ContenderView waiter = Holder();
  waiter.state = ContenderState::kWaiting;
  waiter.data = {.host = "b7"};
  CHECK(ReleaseQuestion("/l", {waiter}, /*force=*/false, 0) ==
        "ask contender b7-x-lock-0000000003 (on b7) to leave the queue of /l? [y/N] ");
  CHECK(ReleaseQuestion("/l", {waiter, waiter}, /*force=*/true, 0) ==
        "remove these 2 from the queue of /l? [y/N] ");
  CHECK(ReleaseQuestion("/l", {holder, waiter}, /*force=*/false, 0) ==
        "end these 2 and release /l? [y/N] ");
  waiter.since_ms = 0;
  waiter.since_exact = false;
  waiter.data.command = "a\nb";
  waiter.position = 2;
  CHECK(Listed(waiter, 60'000) == "2. waiting: a\\nb (on b7, waiting for ≤ 1m)");
}

TEST_CASE("A reservation is described by its ID and its maker") {
  ContenderView view = Holder();
  view.data = {.host = "b7", .user = "ci"};
  view.state = ContenderState::kReserved;
  view.reserved = {.reservation = {.id = "freeze"}};
  CHECK(DescribeTarget("/l", view) ==
        "b7-x-lock-0000000003 reserves /l for freeze (exclusive): user ci on b7");
  CHECK(StaysReserved("/l", view) ==
        "/l stays reserved for freeze; use --reserve freeze, or --force with --contender");
}

TEST_CASE("A contender without data is described by its program") {
  ContenderView view = Holder();
  view.program = protocol::Program::kCurator;
  CHECK(DescribeTarget("/l", view) ==
        "b7-x-lock-0000000003 holds /l (exclusive): created by Curator, which does not record the "
        "owner");
  view.program = protocol::Program::kUnknown;
  CHECK(DescribeTarget("/l", view) ==
        "b7-x-lock-0000000003 holds /l (exclusive): created by an unknown program");
  view.readable = false;
  CHECK(DescribeTarget("/l", view) ==
        "b7-x-lock-0000000003 holds /l (exclusive): its data is not readable");
}

TEST_CASE("Untrusted bytes in a message are escaped") {
  ContenderView view = Holder();
  view.data = {.host = "h\x1b[2J", .user = "\xff", .command = "a\nb"};
  CHECK(DescribeTarget("/l", view) ==
        "b7-x-lock-0000000003 holds /l (exclusive): user \\xff on h\\x1b[2J, a\\nb");
  CHECK(ContenderNotFound("/l", "\x1b") ==
        "\\x1b is not (or no longer) in /l: nothing was released; see zklock inspect -v");
}

TEST_CASE("Paths that cannot be listed are counted") {
  CHECK(Unlistable({"/a"}) ==
        "not authorised to list /a: locks there are not shown; see --auth-file");
  CHECK(Unlistable({"/a", "/b", "/c"}) ==
        "not authorised to list /a and 2 more: locks there are not shown; see "
        "--auth-file");
}

TEST_CASE("A signal is named") {
  CHECK(InterruptedBy(SIGTERM) == "interrupted by SIGTERM");
  CHECK(InterruptedBy(63) == "interrupted by signal 63");
}

}  // namespace zklock::cli
