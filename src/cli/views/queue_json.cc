#include "cli/views/queue_json.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

namespace zklock::cli {
namespace {

// Keeps the order of the manual page.
using nlohmann::ordered_json;

std::string Dump(const ordered_json& value) {
  // The output may be a terminal, and some terminals interpret control characters beyond ASCII.
  return value.dump(-1, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace);
}

template <typename T>
ordered_json OrNull(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json Moment(const std::optional<std::int64_t>& ms_since_1970) {
  return OrNull(ms_since_1970 ? FormatUtc(*ms_since_1970) : std::nullopt);
}

/// Returns a string: a token has 64 bits, too many for a number in most JSON parsers.
ordered_json Token(const std::optional<std::int64_t>& token) {
  return token ? ordered_json(std::to_string(*token)) : ordered_json(nullptr);
}

std::string_view KindName(lock::LockKind kind) {
  switch (kind) {
    case lock::LockKind::kMutex:
      return "mutex";
    case lock::LockKind::kReadWrite:
      return "readwrite";
    case lock::LockKind::kSemaphore:
      return "semaphore";
    case lock::LockKind::kSimple:
      return "simple";
  }
  return "";
}

ordered_json LastRunJson(const std::optional<protocol::LastRelease>& last) {
  if (!last || last->record.is_reservation) return nullptr;
  ordered_json run;
  run["host"] = last->record.host;
  run["mode"] = protocol::ModeName(last->record.mode);
  run["token"] = Token(last->record.token);
  run["ended"] = Moment(last->written_ms);
  run["duration"] = std::chrono::duration<double>(last->record.duration).count();
  run["status"] = last->record.status;
  return run;
}

ordered_json LastStartJson(const lock::LockSurvey& lock) {
  if (!lock.last_start) return nullptr;
  ordered_json start;
  start["began"] = Moment(lock.last_started.count());
  start["host"] = lock.last_start->host;
  start["token"] = Token(lock.last_start->token);
  return start;
}

ordered_json ReservationJson(const ContenderView& view) {
  if (!view.reserved) return nullptr;
  const std::string& reason = view.reserved->reservation.reason;
  const auto& until = view.reserved->until;
  ordered_json reservation;
  reservation["id"] = view.reserved->reservation.id;
  reservation["reason"] = reason.empty() ? ordered_json(nullptr) : ordered_json(reason);
  reservation["until"] = Moment(until ? std::optional(until->count()) : std::nullopt);
  reservation["overdue"] = view.overdue;
  return reservation;
}

/// Returns the reservation that the contender waits to make.
ordered_json ReserveJson(const lock::ContenderData& data) {
  if (data.reserve.empty()) return nullptr;
  const std::string& reason = data.reserve_reason;
  ordered_json reserve;
  reserve["id"] = data.reserve;
  reserve["reason"] = reason.empty() ? ordered_json(nullptr) : ordered_json(reason);
  return reserve;
}

/// Returns the request to leave that was sent to the contender.
ordered_json AskedJson(const lock::ContenderData& data) {
  if (!data.release_request) return nullptr;
  const lock::ReleaseRequest& request = *data.release_request;
  ordered_json asked;
  asked["by"] = request.by.empty() ? ordered_json(nullptr) : ordered_json(request.by);
  asked["reason"] = request.reason.empty() ? ordered_json(nullptr) : ordered_json(request.reason);
  asked["onlyWaiting"] = request.only_waiting;
  return asked;
}

/// Returns the other LOCKs of a run with --any, as the user knows them. A LOCK outside the chroot
/// can only be in data that another user has written.
ordered_json AnyJson(const ContenderView& view, const std::string& chroot) {
  if (!view.IsAny()) return nullptr;
  ordered_json others = ordered_json::array();
  for (const std::string& path : view.data.any) {
    others.push_back(path.starts_with(chroot + "/") ? path.substr(chroot.size()) : path);
  }
  return others;
}

ordered_json ContenderJson(const ContenderView& view, const std::string& chroot) {
  ordered_json contender;
  contender["name"] = view.name;
  contender["program"] = ProgramName(view);
  contender["position"] = OrNull(view.position);
  contender["state"] = StateName(view.state);
  contender["mode"] = protocol::ModeName(view.mode);
  contender["take"] = view.for_permit ? ordered_json(view.take) : ordered_json(nullptr);
  contender["host"] = OrNull(view.data.host);
  contender["user"] = OrNull(view.data.user);
  contender["pid"] = OrNull(view.data.pid);
  contender["since"] = Moment(view.since_ms);
  contender["sinceExact"] = view.since_ms ? ordered_json(view.since_exact) : nullptr;
  contender["command"] = OrNull(view.data.command);
  contender["label"] = OrNull(view.data.label);
  contender["contained"] = OrNull(view.data.contained);
  contender["token"] = Token(view.token);
  contender["session"] =
      view.session ? ordered_json(fmt::format("0x{:x}", static_cast<std::uint64_t>(*view.session)))
                   : ordered_json(nullptr);
  contender["waitsFor"] =
      view.waits_for ? ordered_json(view.waits_for->name) : ordered_json(nullptr);
  contender["any"] = AnyJson(view, chroot);
  contender["reservation"] = ReservationJson(view);
  contender["reserve"] = ReserveJson(view.data);
  contender["asked"] = AskedJson(view.data);
  return contender;
}

/// Returns the fields whose values are known only after the last contender. `exists`: none if that
/// is not known.
std::string LockEnd(const lock::LockSurvey& lock, std::size_t reservations,
                    std::optional<bool> exists) {
  ordered_json end;
  end["held"] = lock.held > reservations;
  end["reserved"] = reservations != 0;
  end["used"] = lock.IsSemaphore() ? ordered_json(lock.used) : ordered_json(nullptr);
  end["free"] = OrNull(lock.FreePermits());
  end["exists"] = OrNull(exists);
  return "]," + Dump(end).substr(1);
}

}  // namespace

QueueJson::QueueJson(Form form, TextOutput out, std::string chroot)
    : form_(form), out_(std::move(out)), chroot_(std::move(chroot)) {}

void QueueJson::OnLock(const lock::LockSurvey& lock) {
  describer_.emplace(lock);
  ordered_json head;
  head["lock"] = lock.path;
  head["kind"] = lock.kind ? ordered_json(KindName(*lock.kind)) : ordered_json(nullptr);
  head["permits"] = OrNull(lock.permit_limit);
  head["lastRun"] = LastRunJson(describer_->last_release());
  head["lastStart"] = LastStartJson(lock);
  std::string text = Dump(head);
  text.back() = ',';  // the object continues
  text += "\"contenders\":[";
  has_contenders_ = false;
  reservations_ = 0;
  if (form_ == Form::kLines) {
    line_ = std::move(text);
  } else {
    out_((std::exchange(has_locks_, true) ? ",\n" : "[\n") + text);
  }
}

void QueueJson::OnEntry(const lock::QueueEntry& entry) {
  const ContenderView view = describer_->Describe(entry);
  if (view.state == ContenderState::kNoContender) return;
  if (view.state == ContenderState::kReserved) ++reservations_;
  std::string text =
      (std::exchange(has_contenders_, true) ? "," : "") + Dump(ContenderJson(view, chroot_));
  if (form_ == Form::kLines) {
    line_ += text;
  } else {
    out_(std::move(text));
  }
}

void QueueJson::OnLockEnd(const lock::LockSurvey& lock) {
  if (form_ == Form::kArray) return out_(LockEnd(lock, reservations_, lock.exists));
  line_ += LockEnd(lock, reservations_, lock.exists) + "\n";
  Known& known = known_[lock.path];
  const std::size_t hash = std::hash<std::string>()(line_);
  const bool is_new = known.hash != hash;
  known = {hash, true};
  if (is_new) out_(std::move(line_));
  line_.clear();
}

void QueueJson::OnEnd() {
  if (form_ == Form::kArray) return out_(std::exchange(has_locks_, false) ? "\n]\n" : "[]\n");
  // A LOCK that is no longer reported is free.
  for (auto known = known_.begin(); known != known_.end();) {
    if (std::exchange(known->second.seen, false)) {
      ++known;
      continue;
    }
    const lock::LockSurvey free{.path = known->first};
    OnLock(free);
    out_(std::exchange(line_, "") + LockEnd(free, 0, std::nullopt) + "\n");
    known = known_.erase(known);
  }
}

}  // namespace zklock::cli
