#include "cli/options/option_rows.h"

#include <algorithm>

namespace zklock::test {
namespace {

using enum Situation;

constexpr int kUsage = 64;
constexpr int kUnavailable = 69;
constexpr int kConflict = 75;
constexpr int kLost = 76;
constexpr int kConfiguration = 78;

Outcomes Everywhere(const Outcome& outcome) {
  return {{kFree, outcome},   {kBusy, outcome},        {kFreed, outcome},
          {kNested, outcome}, {kHeldByShell, outcome}, {kNoServer, outcome}};
}

/// Returns the outcome of most runs.
Outcomes Usual(const std::string& out) {
  Outcomes outcomes = Everywhere({0, out});
  outcomes[kBusy] = {kConflict};
  outcomes[kNoServer] = {kUnavailable};
  return outcomes;
}

Outcomes But(Outcomes outcomes, const Outcomes& others) {
  for (const auto& [situation, outcome] : others) outcomes[situation] = outcome;
  return outcomes;
}

Outcomes Without(Outcomes outcomes, const std::vector<Situation>& situations) {
  for (const Situation situation : situations) outcomes.erase(situation);
  return outcomes;
}

/// Returns the options of every subcommand. `usual` is the outcome without any of them.
Rows CommonRows(const Outcomes& usual, const std::string& help) {
  Rows rows = {
      {"--help", {"--help"}, Everywhere({0, "usage: zklock " + help})},
      {"--servers", {"--servers", "SERVERS"}, usual},
      {"--root", {"--root", "/t"}, usual},
      {"--connect-timeout", {"--connect-timeout", "PATIENCE"}, usual},
      {"--session-timeout", {"--session-timeout", "10s"}, usual},
      {"--auth-file", {"--auth-file", "CREDENTIALS"}, usual},
      {"--proxy-command", {"--proxy-command", "socat - TCP:%h:%p"}, usual},
      {"--config", {"--config", "CONFIG"}, usual},
      {"--quiet", {"--quiet"}, usual},
      {"--verbose", {"--verbose"}, usual},
  };
  rows.back().talks = true;
  rows.push_back({"--tls", {"--tls", "--tls-ca", "/a.pem"}, Everywhere({kConfiguration})});
  rows.push_back({"--tls-ca", {"--tls-ca", "/a.pem"}, Everywhere({kConfiguration})});
  rows.push_back({"--tls-cert", {"--tls-cert", "/a.pem"}, Everywhere({kConfiguration})});
  rows.push_back({"--tls-key", {"--tls-key", "/a.pem"}, Everywhere({kUsage})});
  rows.push_back({"--sasl", {"--sasl", "digest-md5"}, Everywhere({kUsage})});
  rows.push_back({"--sasl-service", {"--sasl-service", "zk"}, Everywhere({kUsage})});
  rows.back().is_default_in_file = true;
  rows.push_back({"--tls-verify", {"--tls-verify", "ca"}, Everywhere({kUsage})});
  rows.back().is_default_in_file = true;
  return rows;
}

/// Options for acquiring the LOCK.
Rows LockRows(const std::string& subcommand, const Outcomes& usual) {
  const bool reads = subcommand == "read";
  const bool exclusive = subcommand == "exclusive" || subcommand == "try";
  const bool tries = subcommand == "try";
  const Outcomes refused = Everywhere({kUsage});
  // Waiting for a LOCK that an outer run holds would never end; `try` does not wait.
  const Outcome endless = {tries ? kConflict : kUsage};
  const Outcomes queued = But(usual, {{kNested, endless}, {kHeldByShell, endless}});
  Outcomes not_reserved = Without(Everywhere({kConflict}), {kFreed});
  not_reserved[kNoServer] = {kUnavailable};
  const Outcomes simple = exclusive ? usual : refused;
  const auto dialect = [](const std::string& name, const Outcomes& outcomes) {
    const Words words = {"--dialect", name};
    return Row{"--dialect", words, outcomes, words};
  };
  Rows rows = {
      {"--no-nest", {"--no-nest"}, queued},
      {"--reserve", {"--reserve", "id"}, queued},
      {"--for", {"--reserve", "id", "--for", "1h"}, queued},
      {"--for", {"--for", "1h"}, refused},
      {"--resume", {"--resume", "id"}, not_reserved},
      {"--resume", {"--resume", "id", "--for", "1h"}, refused},
      {"--reason", {"--reserve", "id", "--reason", "a reason"}, queued},
      {"--reason", {"--reason", "a reason"}, refused},
      {"--acl", {"--acl", "open"}, usual},
      {"--acl", {"--acl", "creator"}, refused},
      {"--acl", {"--auth-file", "CREDENTIALS", "--acl", "creator"}, usual},
      dialect("curator", usual),
      dialect("kazoo", usual),
      dialect("simple", simple),
  };
  if (exclusive) {
    rows.push_back({"--permits",
                    {"--permits", "1"},
                    But(Without(usual, {kHeldByShell}), {{kNested, endless}}),
                    {"--permits", "1"}});
    // The shell holds the only permit: nothing detects that zklock waits for its own shell.
    rows.push_back({"--permits",
                    tries ? Words{"--permits", "1"} : Words{"--permits", "1", "--wait", "1s"},
                    {{kHeldByShell, {kConflict}}},
                    {"--permits", "1"}});
    rows.push_back({"--permits",
                    {"--permits", "2"},
                    Without(But(usual, {{kBusy, {0, "ran\n"}}}), {kFreed}),
                    {"--permits", "2"}});
    rows.push_back({"--take",
                    {"--permits", "2", "--take", "2"},
                    But(Without(usual, {kHeldByShell}), {{kNested, endless}}),
                    {"--permits", "2", "--take", "2"}});
    rows.push_back({"--take",
                    tries ? Words{"--permits", "2", "--take", "2"}
                          : Words{"--permits", "2", "--take", "2", "--wait", "1s"},
                    {{kHeldByShell, {kConflict}}},
                    {"--permits", "2", "--take", "2"}});
  }
  if (reads) return rows;
  rows.push_back({"--history", {"--history", "8"}, usual});
  for (const std::string interval : {"--min-interval", "--once-per"}) {
    rows.push_back(
        {interval, {interval, "1h"}, But(usual, {{kNested, {kUsage}}, {kHeldByShell, {kUsage}}})});
  }
  return rows;
}

/// Returns the options for waiting and for several LOCKs, which `try` does not have; for `try`, its
/// own options.
Rows WaitRows(const std::string& subcommand, const Outcomes& usual) {
  if (subcommand == "try") return {{"--read", {"--read"}, usual}, {"--write", {"--write"}, usual}};
  const Outcomes waiting = Without(usual, {kBusy});
  const Outcomes at_once = Without(usual, {kFreed});
  return {
      {"--wait", {"--wait", "0"}, at_once},
      {"--wait", {"--wait", "1ms"}, {{kBusy, {kConflict}}}},
      {"--wait", {"--wait", "60"}, waiting},
      {"--wait", {"--wait", "106751d"}, waiting},
      {"--nonblock", {"--nonblock"}, at_once},
      {"--max-queue", {"--max-queue", "0"}, at_once},
      {"--max-queue", {"--max-queue", "1"}, waiting},
      {"--supersede", {"--supersede"}, usual, {}, false},
      {"--preempt", {"--preempt", "waiters"}, waiting},
      {"--preempt", {"--preempt", "all", "--wait", "1s"}, at_once},
      {"--also-read", {"--also-read", "OTHER"}, usual, {}, false},
      {"--also-write", {"--also-write", "OTHER"}, usual, {}, false},
  };
}

/// Options for running and ending the command, and for output.
Rows CommandRows(const Outcomes& usual) {
  Rows rows = {
      {"--conflict-exit-code", {"--conflict-exit-code", "7"}, But(usual, {{kBusy, {7}}})},
      {"--kill-after", {"--kill-after", "1s"}, usual},
      {"--kill-after", {"--kill-after", "0"}, usual},
      {"--max-run", {"--max-run", "1h"}, usual},
      {"--stop-signal", {"--stop-signal", "INT"}, usual},
      {"-c", {"-c", "echo ran"}, usual},
      {"--label", {"--label", "a label"}, usual},
      {"--any", {"--any"}, usual},
      {"--publish-command", {"--publish-command"}, usual},
      {"--events", {"--events", "FILE"}, usual},
      {"--events", {"--events", "2"}, usual},
  };
  rows[5].has_command = false;
  rows.back().talks = true;
  const auto choices = [&](const std::string& option, const Words& values) {
    for (const std::string& value : values) rows.push_back({option, {option, value}, usual});
  };
  choices("--on-lost", {"stop", "warn"});
  choices("--descendants", {"leave", "wait", "kill"});
  choices("--contain",
          {"auto", "off"});  // contain_test.cc tests "require", which not all hosts allow
  choices("--progress", {"auto", "plain", "none", "bar"});
  rows.back().talks = true;
  return rows;
}

void Append(Rows& rows, const Rows& more) { rows.insert(rows.end(), more.begin(), more.end()); }

}  // namespace

std::string Name(Situation situation) {
  switch (situation) {
    case kFree:
      return "free";
    case kBusy:
      return "busy";
    case kFreed:
      return "freed while we wait";
    case kNested:
      return "held by an outer zklock";
    case kHeldByShell:
      return "held by the shell";
    case kNoServer:
      break;
  }
  return "no server";
}

/// --dry-run never waits, and prints its findings.
Row DryRunRow() {
  const Outcome free = {0, "result    would "};
  return {"--dry-run",
          {"--dry-run"},
          {{kFree, free},
           {kBusy, {kConflict, "result    would "}},
           {kNested, free},
           {kHeldByShell, free},
           {kNoServer, {kUnavailable, "servers "}}}};
}

Rows RunRows(const std::string& subcommand) {
  Outcomes usual = Usual("ran\n");
  if (subcommand == "try") usual.erase(kFreed);
  Rows rows = CommonRows(usual, subcommand);
  Append(rows, LockRows(subcommand, usual));
  Append(rows, CommandRows(usual));
  for (Row& row : rows) row.decides_to_wait = subcommand == "try";
  Append(rows, WaitRows(subcommand, usual));
  rows.push_back(DryRunRow());
  if (subcommand == "try") {
    for (Row& row : rows) row.outcomes.erase(kFreed);
  }
  const Outcomes refused = Everywhere({kUsage});
  for (const char* option : {"--owner-pid", "--on-lost-signal"}) {
    rows.push_back({option, {option, "15"}, refused});
  }
  return rows;
}

Rows HoldRows(const std::string& subcommand) {
  static const std::set<std::string> kOfCommands = {
      "--stop-signal", "--on-lost", "--descendants",  "--contain",  "--publish-command",
      "--events",      "-c",        "--min-interval", "--once-per", "--reserve",
      "--for",         "--reason",  "--resume"};
  Outcomes usual = Usual("");
  if (subcommand == "try") usual.erase(kFreed);
  Rows rows = RunRows(subcommand);
  for (Row& row : rows) {
    if (kOfCommands.count(row.option) > 0) row.outcomes = Everywhere({kUsage});
    if (row.option == "--owner-pid") row.words.back() = "SHELL";
    if (row.option == "--owner-pid" || row.option == "--on-lost-signal") {
      row.outcomes = usual;
      row.decides_to_wait = subcommand == "try";
    }
    if (row.option.starts_with("--also-")) row.talks = true;  // OTHER stays held
    for (auto& [situation, outcome] : row.outcomes) {
      if (outcome.out == "ran\n") outcome.out.clear();
    }
    row.words.insert(row.words.begin(), "--hold");
    row.has_command = false;
  }
  rows.push_back({"--hold", {"--hold"}, usual, {}, subcommand == "try", false});
  return rows;
}

Rows ReleaseRows() {
  const Outcomes own = {
      {kFree, {kConflict}}, {kBusy, {kConflict}}, {kHeldByShell, {0}}, {kNoServer, {kUnavailable}}};
  const Outcomes any = But(own, {{kBusy, {0}}});
  // Without --yes, and without a terminal for the question.
  const Outcomes refused = Without(Everywhere({kUsage}), {kFreed, kNested});
  Rows rows = {
      {"--contender", {"--contender", "NAME", "--yes"}, any},
      {"--contender", {"--contender", "NAME"}, refused},
      {"--position", {"--position", "1", "--yes"}, refused},
      {"--position", {"--position", "1"}, refused},
      {"--host", {"--host", "nowhere", "--yes"}, But(own, {{kHeldByShell, {kConflict}}})},
      {"--host", {"--host", "nowhere"}, refused},
      {"--holders", {"--holders", "--yes"}, any},
      {"--holders", {"--holders"}, refused},
      {"--all", {"--all", "--yes"}, any},
      {"--all", {"--all"}, refused},
      {"--force", {"--force", "--holders", "--yes"}, any},
      {"--force", {"--force"}, refused},
      {"--reason", {"--reason", "a reason", "--all", "--yes"}, any},
      {"--reason", {"--reason", "a reason"}, refused},
      {"--wait-released", {"--wait-released", "--holders", "--yes"}, any},
      {"--wait-released", {"--wait-released"}, refused},
  };
  for (Row& row : rows) row.talks = true;
  rows.push_back({"--yes", {"--yes"}, own});
  rows.push_back({"--dry-run",
                  {"--dry-run"},
                  {{kFree, {kConflict, "servers "}},
                   {kBusy, {kConflict, "servers "}},
                   {kHeldByShell, {0, "would release"}},
                   {kNoServer, {kUnavailable, "servers "}}}});
  rows.push_back({"--reserve", {"--reserve", "id"}, But(own, {{kHeldByShell, {kConflict}}})});
  rows.push_back({"--any", {"--any", "--reserve", "id"}, But(own, {{kHeldByShell, {kConflict}}})});
  rows.push_back({"--any", {"--any"}, refused});
  Append(rows, CommonRows(own, "release"));
  for (Row& row : rows) {
    row.outcomes = Without(row.outcomes, {kFreed, kNested});
    row.has_command = false;
  }
  return rows;
}

Rows InspectRows() {
  const auto shows = [](const std::string& free, const std::string& held) {
    return Outcomes{{kFree, {0, free}},
                    {kBusy, {0, held}},
                    {kNested, {0, held}},
                    {kHeldByShell, {0, held}},
                    {kNoServer, {kUnavailable}}};
  };
  const Outcome held = {kConflict};
  const Outcomes text = shows("free", "held by 1");
  const Outcomes json = shows("\"held\":false", "\"held\":true");
  Outcomes watched = json;  // not on a terminal
  for (auto& [situation, outcome] : watched) {
    if (situation != kNoServer) outcome.status = 128 + SIGINT;
  }
  Rows rows = {
      {"--json", {"--json"}, json},
      {"--dot", {"--dot"}, shows("digraph", "digraph")},
      {"--history", {"--history"}, shows("no run", "no run")},
      {"--runs", {"--history", "--runs", "5"}, shows("no run", "no run")},
      {"--runs", {"--runs", "5"}, Everywhere({kUsage})},
      {"--watch", {"--watch"}, watched},
      {"--mine",
       {"--mine"},
       {{kFree, {kLost}},
        {kBusy, {kLost}},
        {kNested, {0}},
        {kHeldByShell, {0}},
        {kNoServer, {kUnavailable}}}},
      {"--servers-report", {"--servers-report"}, Everywhere({kUsage})},  // it takes no LOCK
  };
  // Like a monitoring plugin, a check reports errors on standard output.
  Outcomes check = shows("OK - ", "OK - ");
  check[kNoServer] = {3, "UNKNOWN - "};
  for (const std::string& limit : Words{"--max-held", "--max-wait", "--max-waiting", "--max-age"}) {
    Outcomes judged = check;
    if (limit == "--max-age") {
      for (auto& [situation, outcome] : judged) {
        if (situation != kNoServer) outcome = {2, "no success is known"};
      }
    }
    rows.push_back({limit, {"--check", limit, limit == "--max-waiting" ? "1:2" : "1h:2h"}, judged});
    rows.push_back({limit, {limit, "1"}, Everywhere({kUsage})});
  }
  rows.push_back({"--last-run", {"--check", "--last-run"}, check});
  rows.push_back({"--last-run", {"--last-run"}, Everywhere({kUsage})});
  rows.push_back({"--check", {"--check"}, check});
  rows.push_back({"--prometheus", {"--prometheus"}, shows("# TYPE", "zklock_held{")});
  rows.push_back({"--output",
                  {"--prometheus", "--output", "FILE"},
                  {{kFree, {0}},
                   {kBusy, {0}},
                   {kNested, {0}},
                   {kHeldByShell, {0}},
                   {kNoServer, {kUnavailable}}}});
  Append(rows, CommonRows(text, "inspect"));
  for (Row& row : rows) {
    row.has_command = false;
    row.outcomes.erase(kFreed);
    if (row.option == "--quiet") {
      row.outcomes = {{kFree, {0}},
                      {kBusy, held},
                      {kNested, held},
                      {kHeldByShell, held},
                      {kNoServer, {kUnavailable}}};
    }
  }
  return rows;
}

}  // namespace zklock::test
