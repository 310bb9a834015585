#include "cli/reports/event_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
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
#include "cli/text/run_messages.h"
#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr Duration kDrainPatience = std::chrono::seconds(5);

/// Returns our own close-on-exec duplicate of `fd`, a descriptor that zklock was started with.
UniqueFd TakeOver(int fd) {
  // Inherited descriptors are not close-on-exec: one with this flag is zklock's own.
  const int flags = fcntl(fd, F_GETFD);
  if (flags < 0 || (static_cast<unsigned>(flags) & FD_CLOEXEC) != 0) return {};
  const int mode = fcntl(fd, F_GETFL);
  if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY) return {};
  UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (own && fd > STDERR_FILENO) close(fd);
  return own;
}

}  // namespace

UniqueFd OpenEvents(const std::string& target, const std::string& place,
                    const std::string& subcommand) {
  const bool is_number = std::all_of(target.begin(), target.end(),
                                     [](char letter) { return letter >= '0' && letter <= '9'; });
  if (is_number) {
    const auto number = ParseNumber(target, 0, INT_MAX);
    UniqueFd fd = number ? TakeOver(*number) : UniqueFd();
    const std::string why = fmt::format(message::kNoDescriptor, target);
    if (!fd && !place.empty()) throw ConfigError(place + ": " + why);
    if (!fd) throw UsageError(why, subcommand);
    return fd;
  }
  // Non-blocking: opening a FIFO without a reader fails at once.
  UniqueFd fd(open(target.c_str(),
                   O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  if (!fd) {
    const int error = errno;
    struct stat status {};
    const bool lacks_reader =
        error == ENXIO && stat(target.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
    throw std::system_error(error, std::generic_category(),
                            lacks_reader ? fmt::format(message::kNoEventsReader, Printable(target))
                                         : fmt::format(message::kCannotAppend, Printable(target)));
  }
  return fd;
}

std::string EventLine(const EventText& event, const EventContext& context) {
  Json json = {{"time", context.time},
               {"event", event.name},
               {"lock", event.lock ? Json(*event.lock) : Json()},
               {"contender", nullptr},
               {"token", nullptr},
               {"position", nullptr}};
  if (context.ticket) {
    json["contender"] = protocol::BaseOf(context.ticket->path);
    json["token"] = std::to_string(context.ticket->token);
  }
  for (const EventField& field : event.fields) {
    std::visit([&](const auto& value) { json[field.name] = value; }, field.value);
  }
  if (context.dropped > 0) json["dropped"] = context.dropped;
  // Names may contain arbitrary bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void EventWriter::OnEvent(const Event& event) {
  EventText shown = Describe(event);
  if (const auto* queued = std::get_if<lock::QueuedEvent>(&event)) {
    tickets_.insert_or_assign(*shown.lock, queued->ticket);
  } else if (const auto* reserved = std::get_if<ReservedEvent>(&event)) {
    // If an earlier run made the reservation, this run queued in vain or not at all, so the
    // reservation's ticket replaces this run's.
    tickets_.insert_or_assign(*shown.lock, reserved->ticket);
  } else if (std::holds_alternative<lock::PlaceLostEvent>(event)) {
    tickets_.erase(*shown.lock);
  } else if (takes_one_ && (std::holds_alternative<AcquiredEvent>(event) ||
                            std::holds_alternative<AcquiredByOuterEvent>(event))) {
    locks_ = {*shown.lock};
  }
  if (!shown.lock && locks_.size() == 1) shown.lock = locks_.front();
  if (shown.name != nullptr) Write(shown);
  if (std::holds_alternative<lock::QueueLeftEvent>(event)) tickets_.erase(*shown.lock);
}

void EventWriter::Write(const EventText& event) {
  EventContext context{.time = FormatUtc(MillisecondsNow()).value_or(""), .dropped = dropped_};
  if (event.lock) {
    const auto ticket = tickets_.find(*event.lock);
    if (ticket != tickets_.end()) context.ticket = ticket->second;
  }
  if (writer_.WriteLine(EventLine(event, context))) {
    dropped_ = 0;
    last_dropped_.reset();
  } else {
    ++dropped_;
    last_dropped_ = event;
  }
}

std::string EventWriter::Finish() {
  writer_.Drain(kDrainPatience);
  if (last_dropped_ && writer_.waiting() == 0) {
    // The reader needs the last event most: it tells how the run ended.
    --dropped_;
    Write(EventText(*last_dropped_));
    writer_.Drain(kDrainPatience);
  }
  if (writer_.waiting() > 0) return message::kEventsUnread;
  const int error = writer_.error();
  return error == 0 || error == EPIPE ? "" : std::generic_category().message(error);
}

}  // namespace zklock::cli
