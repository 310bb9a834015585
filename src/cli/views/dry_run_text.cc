#include "cli/views/dry_run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/reports/end_reason.h"
#include "cli/reports/report_reasons.h"
#include "cli/text/duration.h"
#include "cli/text/printable.h"
#include "cli/text/queue_view.h"
#include "cli/text/table.h"

namespace zklock::cli {
namespace {

constexpr std::size_t kNameColumn = 10;

/// Wraps `text`, which is printable, at spaces into lines of at most `width` columns. A longer word
/// gets its own line.
std::vector<std::string> Wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::string word(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (DisplayWidth(line) + 1 + DisplayWidth(word) <= width) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string RightsText(unsigned rights) {
  constexpr std::pair<unsigned, std::string_view> kNames[] = {{zookeeper::kMayRead, "read"},
                                                              {zookeeper::kMayWrite, "write"},
                                                              {zookeeper::kMayCreate, "create"},
                                                              {zookeeper::kMayDelete, "delete"},
                                                              {zookeeper::kMayAdmin, "admin"}};
  std::string text;
  bool has_all = true;
  for (const auto& [right, name] : kNames) {
    const bool is_granted = (rights & right) != 0;
    has_all = has_all && is_granted;
    if (is_granted) text.append(text.empty() ? "" : ", ").append(name);
  }
  return has_all ? "all" : text.empty() ? "none" : text;
}

/// Returns "digest:ops", without the hash of the password.
std::string UserText(const zookeeper::AclEntry& entry) {
  if (entry.scheme == "world") return "everyone";
  const bool has_hash = entry.scheme == "digest";
  return entry.scheme + ":" + (has_hash ? entry.id.substr(0, entry.id.find(':')) : entry.id);
}

/// Uses the message of a real run up to its last semicolon.
template <typename... Args>
std::string WouldNotRun(EndReason reason, const Args&... args) {
  const std::string message = EndRun(reason, args...).message;
  return "would not run: " + message.substr(0, message.rfind(';'));
}

std::string WaitText(const RunOptions& options, const std::string& lock) {
  if (!options.wait) return fmt::format("would wait for {}", lock);
  return fmt::format("would wait for {}, at most {}", lock, FormatDuration(*options.wait));
}

std::string Asking(Preempt preempt) {
  switch (preempt) {
    case Preempt::kNobody:
      break;
    case Preempt::kWaiters:
      return "; it would ask the waiters to leave";
    case Preempt::kAll:
      return "; it would ask all of them to leave";
  }
  return "";
}

std::string ResultText(const RunOptions& options, const DryRunFinding& finding) {
  using enum DryRunFinding::What;
  switch (finding.what) {
    case kFree:
      break;
    case kBusy:
      return (options.try_only
                  ? WouldNotRun(EndReason::kTaken, finding.lock, HeldText(finding.busy))
                  : WaitText(options, finding.lock) + BlockerText(finding.busy)) +
             (finding.more > 0 ? fmt::format("; {} more in the queue", finding.more) : "") +
             Asking(options.preempt);
    case kQueueFull:
      return WouldNotRun(EndReason::kQueueFull, finding.lock,
                         QueueFullText(options.max_queue.value_or(0)));
    case kTooRecent:
      return WouldNotRun(EndReason::kTooRecent, finding.lock,
                         finding.recent.option == "--once-per" ? "started" : "succeeded",
                         finding.recent.host, FormatDuration(finding.recent.ago),
                         finding.recent.option, FormatDuration(finding.recent.interval));
    case kNotReserved:
      return WouldNotRun(EndReason::kNotReserved, finding.lock, options.reserve,
                         OtherReservationText(finding.busy.reserved));
  }
  return "";
}

}  // namespace

std::string FormatRows(const std::vector<DryRunRow>& rows, std::size_t width, bool colours) {
  constexpr std::size_t kLeastText = 20;
  const std::size_t room =
      width == 0 ? std::string::npos : std::max(width, kNameColumn + kLeastText) - kNameColumn;
  std::string text;
  for (const DryRunRow& row : rows) {
    std::string_view name = row.name;
    for (const std::string& line : Wrap(Printable(row.text), room)) {
      text += Paint(Tone::kTitle, name, colours) + std::string(kNameColumn - name.size(), ' ');
      text += line + "\n";
      name = "";
    }
  }
  return text;
}

DryRunRow ServersRow(const ServerOptions& options) {
  return {"servers", fmt::format("{} ({})", options.servers_text, options.servers_origin)};
}

DryRunRow MissingChrootRow(const RunOptions& options) {
  return {"chroot",
          fmt::format("{} does not exist: {}", options.server.servers.chroot,
                      options.resumes ? "no lock in it is reserved" : "a run would create it")};
}

DryRunRow IdentityRow(const ServerOptions& options) {
  const auto& credentials = options.access.credentials;
  const bool has_digest = std::any_of(credentials.begin(), credentials.end(),
                                      [](const auto& one) { return one.scheme == "digest"; });
  return {"identity", IdentityText(options.access, options.transport) +
                          (has_digest ? ", as claimed: servers accept any password" : "")};
}

DryRunRow CommandRow(const std::string& executable) { return {"command", executable}; }

DryRunRow NoCommandRow(const process::Owner* owner) {
  if (owner == nullptr) return {"command", "none: it only reserves"};
  return {"command", fmt::format("none: it holds the lock for process {} ({})", owner->id().pid,
                                 owner->name())};
}

DryRunRow ContainRow(const std::string& parent, const std::optional<process::NoCgroup>& none) {
  if (!parent.empty()) return {"contain", fmt::format("in a new cgroup in {}", parent)};
  const std::string why = none ? NoCgroupText(*none) : "--contain off";
  return {"contain", fmt::format("without a cgroup ({}): its processes are found in /proc", why)};
}

DryRunRow MaxRunRow(Duration limit, bool has_owner) {
  return {"max-run", fmt::format("{}, then {}", FormatDuration(limit),
                                 has_owner ? "that process is signalled and the lock released"
                                           : "the command is terminated")};
}

DryRunRow HeldByShellRow() { return {"holder", "this shell, for this run too (--hold)"}; }

std::string HeldAboveText(const std::string& lock) {
  return fmt::format("{}: held for this run by an outer zklock\n", Printable(lock));
}

DryRunRow ModeRow(protocol::Mode mode, const std::optional<std::size_t>& permits,
                  std::size_t take) {
  if (take > 1) return {"mode", fmt::format("{} permits of {}", take, *permits)};
  return {"mode", permits ? fmt::format("a permit of {}", *permits)
                          : std::string(protocol::ModeName(mode))};
}

std::vector<DryRunRow> RightsRows(const zookeeper::AclReply& acl, const std::string& of,
                                  bool is_queue, bool may_queue, bool needs_delete,
                                  const zookeeper::Access& access) {
  const unsigned needed = zookeeper::kMayCreate | (needs_delete ? zookeeper::kMayDelete : 0);
  std::vector<DryRunRow> rows;
  const auto add = [&](std::string text) {
    rows.push_back({rows.empty() ? "rights" : "", std::move(text)});
  };
  if (!is_queue) add(fmt::format("those of {}, where it would be created:", of));
  if (acl.error != zookeeper::Error::kNone) add("not known: its ACL cannot be read");
  for (const zookeeper::AclEntry& entry : acl.entries) {
    add(fmt::format("{}: {}", UserText(entry), RightsText(entry.rights)));
  }
  const auto is_claimed = [&](const zookeeper::AclEntry& entry) {
    return entry.scheme == "digest" && (entry.rights & needed) == needed &&
           std::any_of(access.credentials.begin(), access.credentials.end(), [&](const auto& one) {
             return one.scheme == "digest" &&
                    one.credential.starts_with(entry.id.substr(0, entry.id.find(':')) + ":");
           });
  };
  const auto claimed = std::find_if(acl.entries.begin(), acl.entries.end(), is_claimed);
  if (may_queue || claimed == acl.entries.end()) {
    rows.push_back({"access", may_queue ? "granted" : "denied"});
  } else {
    rows.push_back({"access", fmt::format("denied, though {} may queue: is the password wrong?",
                                          UserText(*claimed))});
  }
  return rows;
}

std::vector<DryRunRow> ResultRows(const RunOptions& options,
                                  const std::vector<DryRunFinding>& findings, int error,
                                  const std::string& why) {
  std::vector<DryRunRow> rows;
  const auto add = [&](std::string text) {
    rows.push_back({rows.empty() ? "result" : "", std::move(text)});
  };
  if (error != 0) add(fmt::format("would not run: {} (status {})", why, error));
  auto free = std::find_if(findings.begin(), findings.end(), [](const auto& one) {
    return one.what == DryRunFinding::What::kFree && one.is_ours;
  });
  if (free == findings.end()) {
    free = std::find_if(findings.begin(), findings.end(),
                        [](const auto& one) { return one.what == DryRunFinding::What::kFree; });
  }
  const char* const at_once = options.hold              ? "would hold at once"
                              : options.command.empty() ? "would reserve at once"
                                                        : "would run at once";
  if (error == 0 && options.any && free != findings.end()) {
    add(fmt::format("{}, under {}", at_once, free->lock));
    return rows;
  }
  const bool waits_for_one =
      options.any && std::any_of(findings.begin(), findings.end(), [](const auto& one) {
        return one.what == DryRunFinding::What::kBusy;
      });
  for (const DryRunFinding& finding : findings) {
    if (finding.what == DryRunFinding::What::kQueueFull && waits_for_one) {
      add(fmt::format("would not wait for {}, which {} (--max-queue)", finding.lock,
                      QueueFullText(options.max_queue.value_or(0))));
    } else if (finding.what != DryRunFinding::What::kFree) {
      add(ResultText(options, finding));
    }
  }
  if (rows.empty()) add(at_once);
  return rows;
}

std::vector<DryRunRow> ReleaseRows(ReleaseAction action, const std::string& target) {
  const char* const what = action == ReleaseAction::kAskProgram        ? "would ask"
                           : action == ReleaseAction::kDeleteContender ? "would delete"
                                                                       : "would release";
  return {{"result", fmt::format("{}: {}", what, target)}};
}

std::string OwnHoldText(const std::string& lock, pid_t keeper) {
  return fmt::format("{}, which process {} holds for this shell", lock, keeper);
}

std::string ReservationHoldText(const std::string& lock, const lock::Reserved& reserved) {
  return fmt::format("{}, which is reserved for {}", lock,
                     ReservationText(reserved, /*overdue=*/false));
}

}  // namespace zklock::cli
