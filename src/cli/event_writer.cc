#include "cli/event_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/grammar.h"
#include "cli/report.h"
#include "cli/report_queue.h"
#include "process/supervisor.h"
#include "protocol/lock_path.h"

namespace zklock::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What a step is called, and what it has beyond what all have.
struct Event {
  std::string step;
  Json more = Json::object();
};

std::string LossName(lock::Loss loss) {
  switch (loss) {
    case lock::Loss::kRemoved:
      return "removed";
    case lock::Loss::kExpired:
      return "expired";
    case lock::Loss::kShortSession:
      return "short-session";
    case lock::Loss::kOuter:
      return "outer";
    case lock::Loss::kUnproven:
      break;
  }
  return "unproven";
}

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

/// A step as an event; none for what is no news to a program.
class Describe {
 public:
  explicit Describe(bool queued_anew) : queued_anew_(queued_anew) {}

  std::optional<Event> operator()(const Connected& connected) const {
    return Event{"connected",
                 {{"server", connected.server},
                  {"sessionTimeout", Seconds(connected.granted)},
                  {"effectiveTimeout", Seconds(connected.effective)}}};
  }
  std::optional<Event> operator()(const Queued&) const {
    Event event{"queued"};
    if (queued_anew_) event.more["reason"] = "expired";
    return event;
  }
  std::optional<Event> operator()(const Waiting& waiting) const {
    return Event{"waiting", {{"predecessor", waiting.predecessor}}};
  }
  std::optional<Event> operator()(const Acquired& acquired) const {
    return Event{"acquired", {{"mode", protocol::ModeName(acquired.ticket.mode)}}};
  }
  std::optional<Event> operator()(const Nested&) const {
    return Event{"acquired", {{"nested", true}}};
  }
  std::optional<Event> operator()(const Suspect&) const { return Event{"suspect"}; }
  std::optional<Event> operator()(const Confirmed&) const { return Event{"confirmed"}; }
  std::optional<Event> operator()(const Lost& lost) const {
    return Event{"lost", {{"reason", LossName(lost.loss)}}};
  }
  std::optional<Event> operator()(const LeaseRanOut&) const {
    return Event{"lost", {{"reason", LossName(lock::Loss::kUnproven)}}};
  }
  std::optional<Event> operator()(const Exited& exited) const {
    const Json signal =
        WIFSIGNALED(exited.wait_status) ? Json(SignalName(WTERMSIG(exited.wait_status))) : Json();
    return Event{"exited",
                 {{"status", process::ShellStatus(exited.wait_status)}, {"signal", signal}}};
  }
  std::optional<Event> operator()(const KeptForNested& kept) const {
    return Event{"nested", {{"runs", kept.runs}, {"pid", kept.pid}}};
  }
  std::optional<Event> operator()(const Released& released) const {
    return Event{"released",
                 {{"reason", EventName(released.reason)},
                  {"status", released.status},
                  {"confirmed", released.confirmed}}};
  }
  std::optional<Event> operator()(const PlaceLost&) const { return std::nullopt; }
  std::optional<Event> operator()(const IncompatibleArrived&) const { return std::nullopt; }
  std::optional<Event> operator()(const Started&) const { return std::nullopt; }

 private:
  bool queued_anew_;
};

/// The LOCK that a step is of; none: it is of all.
struct LockOf {
  using Lock = std::optional<std::string>;
  Lock operator()(const Queued& queued) const { return queued.ticket.lock.display_path(); }
  Lock operator()(const Waiting& waiting) const { return waiting.lock; }
  Lock operator()(const PlaceLost& lost) const { return lost.lock; }
  Lock operator()(const Acquired& acquired) const { return acquired.ticket.lock.display_path(); }
  Lock operator()(const Nested& nested) const { return nested.lock; }
  template <typename Other>
  Lock operator()(const Other&) const {
    return std::nullopt;
  }
};

/// A descriptor of our own for `fd`, which somebody gave us; the command does not get it.
UniqueFd TakeOver(int fd) {
  // Whatever exec has passed on is not close-on-exec; what is, is zklock's own.
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
    if (!fd && !place.empty()) throw ConfigError(place + ": " + NoDescriptor(target));
    if (!fd) throw UsageError(NoDescriptor(target), "exclusive");
    return fd;
  }
  // Non-blocking, so that a FIFO without a reader is refused and not waited for.
  UniqueFd fd(open(target.c_str(),
                   O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  if (!fd) throw std::system_error(errno, std::generic_category(), CannotOpenEvents(target));
  return fd;
}

std::string Rfc3339(std::chrono::system_clock::time_point time) {
  const auto since_1970 =
      std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = since_1970 / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     since_1970 % 1000);
}

std::optional<std::string> EventLine(const Step& step, const EventContext& context) {
  const auto event = std::visit(Describe(context.queued_anew), step);
  if (!event) return std::nullopt;
  Json json = {{"time", context.time},
               {"step", event->step},
               {"lock", context.lock ? Json(*context.lock) : Json()},
               {"contender", nullptr},
               {"token", nullptr},
               {"position", nullptr}};
  if (context.ticket) {
    json["contender"] = protocol::BaseOf(context.ticket->path);
    json["token"] = std::to_string(context.ticket->token);
  }
  if (const auto* waiting = std::get_if<Waiting>(&step)) json["position"] = waiting->ahead + 1;
  json.update(event->more);
  if (context.dropped > 0) json["dropped"] = context.dropped;
  // Names may be anybody's bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void EventWriter::OnStep(const Step& step) {
  if (const auto* queued = std::get_if<Queued>(&step)) {
    tickets_.insert_or_assign(queued->ticket.lock.display_path(), queued->ticket);
  } else if (const auto* lost = std::get_if<PlaceLost>(&step)) {
    tickets_.erase(lost->lock);
    places_lost_.insert(lost->lock);
  }
  Write(step);
}

void EventWriter::Write(const Step& step) {
  EventContext context{.time = Rfc3339(std::chrono::system_clock::now()),
                       .lock = std::visit(LockOf{}, step),
                       .dropped = dropped_};
  if (!context.lock && locks_.size() == 1) context.lock = locks_.front();
  if (context.lock) {
    const auto ticket = tickets_.find(*context.lock);
    if (ticket != tickets_.end()) context.ticket = ticket->second;
    context.queued_anew = places_lost_.count(*context.lock) != 0;
  }
  const auto line = EventLine(step, context);
  if (!line) return;
  if (writer_.WriteLine(*line)) {
    dropped_ = 0;
    last_dropped_.reset();
  } else {
    ++dropped_;
    last_dropped_ = step;
  }
}

void EventWriter::Finish() {
  writer_.Drain();
  if (!last_dropped_) return;
  // How it ended is what the reader needs most.
  --dropped_;
  Write(Step(*last_dropped_));
  writer_.Drain();
}

}  // namespace zklock::cli
