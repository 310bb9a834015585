#include "cli/reports/event_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/options/config.h"
#include "cli/options/option_values.h"
#include "cli/text/messages.h"
#include "cli/text/printable.h"
#include "cli/text/queue_view.h"
#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr Duration kDrainPatience = std::chrono::seconds(5);

/// The event's name in --events; none: it is not written there.
struct NameOfEvent {
  template <typename E>
  std::optional<std::string> operator()(const E& event) const {
    if constexpr (requires { event.kName; }) return event.kName;
    return std::nullopt;
  }
};

/// The LOCK that an event is about; none: all of them.
struct LockOf {
  template <typename E>
  std::optional<std::string> operator()(const E& event) const {
    if constexpr (requires { event.Lock(); }) return event.Lock();
    return std::nullopt;
  }
};

struct FieldsOf {
  template <typename E>
  EventFields operator()(const E& event) const {
    if constexpr (requires { event.Fields(); }) return event.Fields();
    return {};
  }
};

/// Our own close-on-exec duplicate of `fd`, a descriptor that zklock was started with.
UniqueFd TakeOver(int fd) {
  // Inherited descriptors are not close-on-exec: a descriptor that is belongs to zklock itself.
  const int flags = fcntl(fd, F_GETFD);
  if (flags < 0 || (static_cast<unsigned>(flags) & FD_CLOEXEC) != 0) return {};
  const int mode = fcntl(fd, F_GETFL);
  if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY) return {};
  UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (own && fd > STDERR_FILENO) close(fd);
  return own;
}

}  // namespace

UniqueFd OpenEvents(const std::string& target, const std::string& place) {
  const bool is_number = std::all_of(target.begin(), target.end(),
                                     [](char letter) { return letter >= '0' && letter <= '9'; });
  if (is_number) {
    const auto number = ParseNumber(target, 0, INT_MAX);
    UniqueFd fd = number ? TakeOver(*number) : UniqueFd();
    const std::string why = fmt::format(message::kNoDescriptor, target);
    if (!fd && !place.empty()) throw ConfigError(place + ": " + why);
    if (!fd) throw UsageError(why, "exclusive");
    return fd;
  }
  // Non-blocking, so that a FIFO without a reader is refused and not waited for.
  UniqueFd fd(open(target.c_str(),
                   O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  if (!fd) {
    throw std::system_error(errno, std::generic_category(),
                            fmt::format(message::kCannotAppend, Printable(target)));
  }
  return fd;
}

std::optional<std::string> EventLine(const Event& event, const EventContext& context) {
  const auto name = std::visit(NameOfEvent{}, event);
  if (!name) return std::nullopt;
  Json json = {{"time", context.time},
               {"event", *name},
               {"lock", context.lock ? Json(*context.lock) : Json()},
               {"contender", nullptr},
               {"token", nullptr},
               {"position", nullptr}};
  if (context.ticket) {
    json["contender"] = protocol::BaseOf(context.ticket->path);
    json["token"] = std::to_string(context.ticket->token);
  }
  for (const EventField& field : std::visit(FieldsOf{}, event)) {
    std::visit([&](const auto& value) { json[field.name] = value; }, field.value);
  }
  if (context.dropped > 0) json["dropped"] = context.dropped;
  // Names may contain arbitrary bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void EventWriter::OnEvent(const Event& event) {
  if (const auto* queued = std::get_if<QueuedEvent>(&event)) {
    tickets_.insert_or_assign(queued->Lock(), queued->ticket);
  } else if (const auto* reserved = std::get_if<ReservedEvent>(&event)) {
    // If an earlier run made the reservation, its ticket replaces that of this run, which queued in
    // vain or not at all.
    tickets_.insert_or_assign(reserved->Lock(), reserved->ticket);
  } else if (const auto* lost = std::get_if<PlaceLostEvent>(&event)) {
    tickets_.erase(lost->lock);
  } else if (takes_one_ && std::holds_alternative<AcquiredEvent>(event)) {
    locks_ = {std::get<AcquiredEvent>(event).Lock()};
  } else if (takes_one_ && std::holds_alternative<AcquiredByOuterEvent>(event)) {
    locks_ = {std::get<AcquiredByOuterEvent>(event).lock};
  }
  Write(event);
}

void EventWriter::Write(const Event& event) {
  EventContext context{.time = FormatUtc(MillisecondsNow()).value_or(""),
                       .lock = std::visit(LockOf{}, event),
                       .dropped = dropped_};
  if (!context.lock && locks_.size() == 1) context.lock = locks_.front();
  if (context.lock) {
    const auto ticket = tickets_.find(*context.lock);
    if (ticket != tickets_.end()) context.ticket = ticket->second;
  }
  const auto line = EventLine(event, context);
  if (!line) return;
  if (writer_.WriteLine(*line)) {
    dropped_ = 0;
    last_dropped_.reset();
  } else {
    ++dropped_;
    last_dropped_ = event;
  }
}

void EventWriter::Finish() {
  writer_.Drain(kDrainPatience);
  if (!last_dropped_) return;
  // The reader needs the last event most: it tells how the run ended.
  --dropped_;
  Write(Event(*last_dropped_));
  writer_.Drain(kDrainPatience);
}

}  // namespace zklock::cli
