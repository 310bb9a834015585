#pragma once

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "lock/data/contender_data.h"
#include "lock/survey/survey.h"
#include "protocol/queue.h"
#include "protocol/release_record.h"
#include "support/contender_names.h"

namespace zklock::test {

constexpr std::int64_t kNoon = 1709294400000;  // 2024-03-01 12:00:00 UTC

inline void UseUtc() {
  setenv("TZ", "UTC0", 1);
  tzset();
}

/// Returns a contender created `token` seconds after noon.
inline lock::QueueEntry Contender(const std::string& name, std::int64_t token,
                                  const std::string& data = "") {
  return {.name = protocol::ParseContenderName(name).value(),
          .readable = true,
          .stat = {.created_zxid = token,
                   .created_ms = kNoon + token * 1000,
                   .modified_ms = 0,
                   .ephemeral_owner = 0x10000000 + token},
          .data = data};
}

/// Returns a reservation made one minute after noon, which ends at `until_ms`, if that is set.
inline lock::QueueEntry Reservation(const std::string& name, std::int64_t token,
                                    std::optional<std::int64_t> until_ms) {
  lock::QueueEntry entry =
      Contender(name, token, R"({"host":"web1","user":"ops","pid":4242,"command":"zklock"})");
  entry.stat.ephemeral_owner = 0;
  entry.stat.created_zxid = token + 10;
  entry.reserved = {.reservation = {.id = "freeze", .reason = "incident 4711", .token = token},
                    .since = std::chrono::milliseconds(kNoon + 60000)};
  if (until_ms) entry.reserved->until = std::chrono::milliseconds(*until_ms);
  return entry;
}
constexpr std::int64_t kIn2099 = 4070908800000;  // 2099-01-01 00:00:00 UTC

/// Returns the name of a zklock contender.
inline std::string OurName(const std::string& host, const std::string& mark, int number) {
  return Numbered(host + "-" + kUuid + "-" + mark, number);
}

/// Fills in the rest of `lock` from its entries, as a survey would.
inline lock::LockSurvey Found(lock::LockSurvey lock) {
  protocol::Predecessors predecessors;
  std::vector<std::string> contenders;
  for (lock::QueueEntry& entry : lock.entries) {
    if (entry.path.empty()) entry.path = lock.path + "/" + entry.name.full;
    if (!entry.IsContender()) continue;
    if (entry.name.reads() || entry.name.mark == protocol::Mark::kCuratorWrite) {
      lock.kind = lock::LockKind::kReadWrite;
    } else if (!lock.kind) {
      lock.kind = lock::LockKind::kMutex;
    }
    const auto before = predecessors.Next(entry.name);
    contenders.push_back(entry.name.full);
    entry.position = contenders.size();
    if (before) {
      const std::string& name = contenders[*before];
      entry.waits_for = {*before + 1, name, lock.path + "/" + name};
    }
    ++(before ? lock.waiting : lock.held);
  }
  return lock;
}

/// Does the same for a semaphore: the first `holders` entries hold, the next waits for a permit,
/// and the others wait in the turnstile.
inline lock::LockSurvey FoundPermits(lock::LockSurvey lock, std::size_t holders) {
  lock.kind = lock::LockKind::kSemaphore;
  lock.held = holders;
  lock.used = 0;
  lock.waiting = lock.entries.size() - holders;
  for (std::size_t i = 0; i < lock.entries.size(); ++i) {
    lock::QueueEntry& entry = lock.entries[i];
    entry.in_turnstile = i > holders;
    entry.path = lock.path + (entry.in_turnstile ? "/locks/" : "/leases/") + entry.name.full;
    entry.position = i + 1;
    if (i < holders) lock.used += 1 + entry.more.size();
    if (i < holders) continue;
    const lock::QueueEntry& before = lock.entries[i == holders ? 0 : i - 1];
    entry.waits_for = {i == holders ? 1 : i, before.name.full, before.path, i == holders};
  }
  return lock;
}

/// Reports to a sink, as a survey would.
inline void Report(lock::SurveySink& sink, const std::vector<lock::LockSurvey>& locks) {
  for (const lock::LockSurvey& lock : locks) {
    lock::LockSurvey head = lock;
    head.entries.clear();
    sink.OnLock(head);
    for (const lock::QueueEntry& entry : lock.entries) sink.OnEntry(entry);
    sink.OnLockEnd(head);
  }
  sink.OnEnd();
}

/// Sets a LOCK's own data to the record of a run, and its modification time to `written_ms`.
inline void SetLastRun(lock::LockSurvey& lock, const protocol::ReleaseRecord& record,
                       std::int64_t written_ms) {
  lock.data = protocol::FormatLockData({record});
  lock.stat.modified_ms = written_ms;
}

/// Returns a lock with an entry of every kind, for the screens.
inline lock::LockSurvey BusyLock() {
  lock::LockSurvey lock{.path = "/jobs/backup"};
  lock.entries = {
      Contender(OurName("build7.example", "__WRIT__", 41), 8589934705,
                lock::FormatContenderData({.host = "build7.example",
                                           .user = "ci",
                                           .pid = 2104242,
                                           .boot_id = "b7",
                                           .start_time = 1,
                                           .command = "backup.sh --everything --to /srv/backup",
                                           .label = "https://ci.example/job/4711"})),
      Contender(kCuratorReader + "0000000042", 8589934711, "10.1.2.3"),
      Contender(OurName("build9", "__READ__", 43), 8589934720,
                lock::FormatContenderData({.host = "build9",
                                           .user = "日本語",
                                           .pid = 77,
                                           .command = "索引\x1b[2J.sh",
                                           .label = "ein Etikett mit Ümläuten"})),
      Contender(OurName("build11", "__WRIT__", 44), 8589934731,
                lock::FormatContenderData(
                    {.host = "build11", .user = "deploy", .pid = 31337, .command = "rotate.sh"})),
      Contender("0123456789abcdef0123456789abcdef__lock__0000000045", 8589934740, "nightly"),
  };
  for (lock::QueueEntry& entry : lock.entries) {
    entry.stat.created_ms = kNoon + (entry.stat.created_zxid - 8589934592) * 1000;
  }
  lock.entries.push_back(Contender("build-2024010203", 5));
  lock.entries.back().stat.ephemeral_owner = 0;
  lock.entries.back().blocking = "build-2024010203";
  lock.ignored_children = {"config", "evil\x1b]0;x\x07"};
  SetLastRun(lock,
             {.contender = OurName("build5", "__WRIT__", 40),
              .mode = protocol::Mode::kWrite,
              .token = 8589934700,
              .duration = std::chrono::milliseconds(837250),
              .status = 1,
              .host = "build5.example"},
             kNoon + 130 * 1000);
  return Found(std::move(lock));
}

/// Returns a semaphore with three permits: two of them used or, if `is_full`, all of them and a
/// queue.
inline lock::LockSurvey Semaphore(bool is_full) {
  const auto says = [](const std::string& host, int pid) {
    return lock::FormatContenderData({.host = host, .user = "ci", .pid = pid, .command = "render"});
  };
  lock::LockSurvey lock{.path = "/jobs/render", .permit_limit = 3};
  lock.entries = {Contender(OurName("b7", "lease-", 0), 17, says("b7", 4242)),
                  Contender(kCuratorPermit + "0000000004", 18, "10.1.2.3")};
  if (!is_full) return FoundPermits(lock, 2);
  lock.entries.push_back(Contender(OurName("b9", "lease-", 5), 19, says("b9", 7)));
  lock.entries.push_back(Contender(OurName("b8", "lease-", 6), 20, says("b8", 8)));
  lock.entries.push_back(Contender(OurName("b6", "lock-", 7), 21, says("b6", 6)));
  return FoundPermits(lock, 3);
}

/// Returns four LOCKs below a path.
inline std::vector<lock::LockSurvey> Tree() {
  lock::LockSurvey readers{.path = "/jobs/data/a-rather-long-name-for-an-index"};
  readers.entries = {Contender("_c_x-__READ__0000000000", 1, "10.1.2.3"),
                     Contender("_c_y-__READ__0000000001", 2, "10.1.2.4")};
  lock::LockSurvey alone{.path = "/jobs/nightly"};
  alone.entries = {Contender(
      OurName("build3", "lock-", 9), 8589934999,
      lock::FormatContenderData({.host = "build3", .user = "ci", .pid = 9, .command = "make"}))};
  alone.entries.front().stat.created_ms = kNoon;
  std::vector<lock::LockSurvey> tree{BusyLock(), Found(readers), Found(alone), Semaphore(true)};
  for (lock::LockSurvey& lock : tree) lock.in_tree = true;
  return tree;
}

}  // namespace zklock::test
