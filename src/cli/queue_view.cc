#include "cli/queue_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "cli/printable.h"
#include "cli/table.h"

namespace zklock::cli {
namespace {

constexpr std::string_view kNotKnown = "-";
// Whatever somebody says of himself, it does not push the rest out of sight.
constexpr std::size_t kWidestName = 40;
constexpr std::size_t kMostIgnored = 8;

std::string OrDash(const std::optional<std::string>& text) {
  return text && !text->empty() ? *text : std::string(kNotKnown);
}

template <typename Number>
std::string OrDash(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : std::string(kNotKnown);
}

std::string StateName(ContenderState state) {
  switch (state) {
    case ContenderState::kHeld:
      return "held";
    case ContenderState::kWaiting:
      return "waiting";
    case ContenderState::kNoContender:
      return "not a contender";
  }
  return "";
}

std::string Since(const ContenderView& contender) {
  if (!contender.since_ms) return std::string(kNotKnown);
  return (contender.since_exact ? "" : "≥ ") + FormatTime(*contender.since_ms);
}

/// What it runs, or else whose it is.
std::string Command(const ContenderView& contender) {
  if (contender.state == ContenderState::kNoContender) return "";
  if (contender.data.command && !contender.data.command->empty()) return *contender.data.command;
  return fmt::format("({}{})", ProgramName(contender.program),
                     contender.readable ? "" : "; may not be read");
}

std::string Label(const ContenderView& contender) { return contender.data.label.value_or(""); }

std::size_t Count(const std::vector<ContenderView>& queue, ContenderState state) {
  return static_cast<std::size_t>(
      std::count_if(queue.begin(), queue.end(),
                    [state](const ContenderView& contender) { return contender.state == state; }));
}

/// "host:pid command", as far as known.
std::string Holder(const ContenderView& contender) {
  std::string holder = contender.data.host.value_or("");
  if (contender.data.pid) holder += fmt::format(":{}", *contender.data.pid);
  return holder + (holder.empty() ? "" : " ") + Command(contender);
}

std::string QueueTable(const std::vector<ContenderView>& queue, const ViewStyle& style) {
  constexpr auto kRight = Column::Align::kRight;
  const bool has_labels =
      std::any_of(queue.begin(), queue.end(),
                  [](const ContenderView& contender) { return !Label(contender).empty(); });
  std::vector<Column> columns{
      {.title = "POS", .align = kRight},
      {.title = "STATE"},
      {.title = "MODE"},
      {.title = "HOST", .most = kWidestName},
      {.title = "USER", .most = kWidestName},
      {.title = "PID", .align = kRight},
      {.title = "SINCE", .align = kRight},
      {.title = "TOKEN", .align = kRight},
      {.title = "WAITS FOR", .align = kRight},
      {.title = "COMMAND", .most = has_labels ? kWidestName : 0, .flexible = !has_labels}};
  if (has_labels) columns.push_back({.title = "LABEL", .flexible = true});
  if (style.with_names) columns.push_back({.title = "CONTENDER"});
  Table table(std::move(columns));
  for (const ContenderView& contender : queue) {
    const bool counts = contender.state != ContenderState::kNoContender;
    std::vector<std::string> cells{
        OrDash(contender.position),
        StateName(contender.state),
        std::string(counts ? protocol::ModeName(contender.mode) : kNotKnown),
        OrDash(contender.data.host),
        OrDash(contender.data.user),
        OrDash(contender.data.pid),
        Since(contender),
        OrDash(contender.token),
        OrDash(contender.waits_for),
        Command(contender)};
    if (has_labels) cells.push_back(Label(contender));
    // Whoever is no contender has no other name to be known by.
    if (style.with_names) cells.push_back(contender.name);
    table.AddRow(cells);
  }
  return table.Format(style.width);
}

std::string Ignored(const std::vector<std::string>& children) {
  if (children.empty()) return "";
  std::string text = "not in the queue: ";
  for (std::size_t i = 0; i < std::min(children.size(), kMostIgnored); ++i) {
    text += (i == 0 ? "" : ", ") + Printable(children[i], kWidestName);
  }
  if (children.size() > kMostIgnored) {
    text += fmt::format(" and {} more", children.size() - kMostIgnored);
  }
  return text + "\n";
}

}  // namespace

std::vector<ContenderView> DescribeQueue(const lock::LockSurvey& lock) {
  std::vector<ContenderView> queue;
  std::vector<ContenderView> others;
  std::vector<std::size_t> positions(lock.entries.size());
  for (std::size_t i = 0; i < lock.entries.size(); ++i) {
    const lock::QueueEntry& entry = lock.entries[i];
    ContenderView view;
    view.name = entry.name.full;
    view.mode = entry.name.mode();
    view.program = entry.name.program;
    view.readable = entry.readable;
    view.data.version.reset();
    if (entry.readable) {
      view.since_ms = entry.stat.created_ms;
      view.token = entry.stat.created_zxid;
    }
    if (!entry.IsContender()) {
      view.state = ContenderState::kNoContender;
      view.token.reset();
      others.push_back(std::move(view));
      continue;
    }
    positions[i] = queue.size() + 1;
    view.position = positions[i];
    view.data = ParseContenderData(entry.data).value_or(view.data);
    if (lock.waits_for[i]) {
      view.state = ContenderState::kWaiting;
      view.waits_for = positions[*lock.waits_for[i]];
    } else {
      // Number 0 had nobody before it; of any other nobody knows when it got its turn.
      view.since_exact = entry.name.number == 0;
    }
    queue.push_back(std::move(view));
  }
  std::move(others.begin(), others.end(), std::back_inserter(queue));
  return queue;
}

std::string_view ProgramName(protocol::Program program) {
  switch (program) {
    case protocol::Program::kZklock:
      return "zklock";
    case protocol::Program::kCurator:
      return "Curator";
    case protocol::Program::kKazoo:
      return "kazoo";
    case protocol::Program::kCRecipe:
      return "C recipe";
    case protocol::Program::kUnknown:
      break;
  }
  return "unknown";
}

std::string FormatTime(std::int64_t ms_since_1970) {
  const auto seconds = static_cast<std::time_t>(ms_since_1970 / 1000);
  std::tm local{};
  std::array<char, 64> text{};
  if (localtime_r(&seconds, &local) == nullptr ||
      std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local) == 0) {
    return std::string(kNotKnown);
  }
  return text.data();
}

std::string LockText(const lock::LockSurvey& lock, const ViewStyle& style) {
  const std::string path = Printable(lock.path);
  if (!lock.exists) {
    return path + ": free (nobody has ever queued here, or it was cleaned up)\n";
  }
  const std::vector<ContenderView> queue = DescribeQueue(lock);
  std::string text = path + ": free\n";
  if (lock.IsHeld()) {
    text = fmt::format("{}: held by {}, {} waiting\n", path, Count(queue, ContenderState::kHeld),
                       Count(queue, ContenderState::kWaiting));
  }
  if (!queue.empty()) text += "\n" + QueueTable(queue, style);
  const std::string ignored = Ignored(lock.ignored_children);
  return text + (ignored.empty() ? "" : "\n" + ignored);
}

std::string TreeText(const std::string& path, const std::vector<lock::LockSurvey>& locks,
                     const ViewStyle& style) {
  if (locks.empty()) {
    return fmt::format("{}: free, and no lock below it is held\n", Printable(path));
  }
  Table table({{.title = "LOCK"},
               {.title = "HELD BY", .flexible = true},
               {.title = "WAITING", .align = Column::Align::kRight},
               {.title = "SINCE", .align = Column::Align::kRight}});
  for (const lock::LockSurvey& lock : locks) {
    const std::vector<ContenderView> queue = DescribeQueue(lock);
    const std::size_t held = Count(queue, ContenderState::kHeld);
    std::string holders = Holder(queue.front());
    if (held > 1)
      holders = fmt::format("{} and {} more", Printable(holders, kWidestName), held - 1);
    table.AddRow({lock.path, holders, std::to_string(Count(queue, ContenderState::kWaiting)),
                  Since(queue.front())});
  }
  return table.Format(style.width);
}

}  // namespace zklock::cli
