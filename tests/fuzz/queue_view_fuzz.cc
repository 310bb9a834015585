// Checks the output of `inspect` and `release` for a LOCK to which anyone may have written. The
// input is a line with the terminal's width and the LOCK's path, then a line for each child: its
// name, its kind and creation time (`e5`: ephemeral, `p5`: persistent, `u5`: unreadable), and its
// data, separated by tabs. A newline within a field is written as the byte 1f.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/reports/report_queue.h"
#include "cli/text/queue_view.h"
#include "cli/views/queue_dot.h"
#include "cli/views/queue_json.h"
#include "cli/views/queue_text.h"
#include "fuzz/fuzz.h"
#include "fuzz/text.h"
#include "protocol/queue.h"

namespace zklock::fuzz {
namespace {

using cli::ContenderState;
using cli::ContenderView;
using lock::LockSurvey;

constexpr std::size_t kMostChildren = 8;
constexpr std::string_view kPrintableAscii =
    " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz"
    "{|}~";

std::string TakeField(std::string_view& line) {
  std::string field = TakePart(line, '\t');
  std::replace(field.begin(), field.end(), '\x1f', '\n');
  return field;
}

std::int64_t ToNumber(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

lock::QueueEntry MakeEntry(std::string_view rest) {
  lock::QueueEntry entry;
  const std::string kind = TakeField(rest);
  entry.readable = !kind.starts_with('u');
  if (!entry.readable) return entry;
  entry.stat.created_ms =
      ToNumber(std::string_view(kind).substr(std::min<std::size_t>(1, kind.size())));
  entry.stat.created_zxid = entry.stat.created_ms;
  entry.stat.ephemeral_owner = kind.starts_with('p') ? 0 : 1;
  entry.data = TakeField(rest);
  return entry;
}

/// A survey as lock::Survey leaves it: in queue order; a child that is not a contender neither
/// waits nor is waited for.
LockSurvey MakeSurvey(std::string path, std::string_view children) {
  std::map<std::string, lock::QueueEntry> entries;
  for (const std::string& line : Split(children, '\n', kMostChildren)) {
    std::string_view rest = line;
    std::string name = TakeField(rest);
    entries.emplace(std::move(name), MakeEntry(rest));
  }
  LockSurvey survey{.path = std::move(path)};
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) {
    names.push_back(name);
    if (!protocol::ParseContenderName(name)) survey.ignored_children.push_back(name);
  }
  protocol::Predecessors predecessors;
  std::vector<std::string> queue;
  std::vector<lock::QueueEntry> others;
  for (protocol::ContenderName& name : protocol::Queue(names)) {
    lock::QueueEntry entry = entries.at(name.full);
    entry.name = std::move(name);
    if (!entry.IsContender()) {
      others.push_back(std::move(entry));
      continue;
    }
    const auto before = predecessors.Next(entry.name);
    queue.push_back(entry.name.full);
    entry.position = queue.size();
    if (before) entry.waits_for = {*before + 1, queue[*before], "/" + queue[*before]};
    ++(before ? survey.waiting : survey.held);
    survey.entries.push_back(std::move(entry));
  }
  for (lock::QueueEntry& entry : others) survey.entries.push_back(std::move(entry));
  return survey;
}

void Report(lock::SurveySink& sink, const std::vector<LockSurvey>& locks) {
  for (const LockSurvey& lock : locks) {
    sink.OnLock(lock);
    for (const lock::QueueEntry& entry : lock.entries) sink.OnEntry(entry);
    sink.OnLockEnd(lock);
  }
  sink.OnEnd();
}

template <typename View, typename... Arguments>
std::string Render(const std::vector<LockSurvey>& locks, Arguments&&... arguments) {
  std::string text;
  View view(std::forward<Arguments>(arguments)...,
            [&text](const std::string& more) { text += more; });
  Report(view, locks);
  return text;
}

void TryQueue(const LockSurvey& survey, const std::vector<ContenderView>& queue) {
  Require(queue.size() == survey.entries.size(), "every child is described");
  std::size_t position = 0;
  bool may_hold = true;
  for (const ContenderView& contender : queue) {
    if (contender.state == ContenderState::kNoContender) {
      Require(!contender.position && !contender.waits_for, "a non-contender has no position");
      ++position;
      continue;
    }
    Require(contender.position == ++position, "contenders come first, in order");
    const bool holds = contender.state == ContenderState::kHeld;
    Require(!holds || may_hold, "the holders come first");
    may_hold = holds;
    Require(contender.waits_for.has_value() == !holds, "a waiter has a predecessor");
    const std::size_t before = contender.waits_for ? contender.waits_for->position : 1;
    Require(before >= 1 && (holds || before < position), "a predecessor is earlier in the queue");
  }
}

/// Requires exactly `lines` lines without anything that a terminal would interpret.
void RequireLines(const std::string& text, std::size_t lines) {
  RequireHarmless(text, /*lines=*/true);
  const auto ends = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  Require(text.ends_with('\n') && ends == lines, "the number of lines is as expected");
}

}  // namespace

void Try(std::string_view input) {
  const std::string first_line = TakePart(input, '\n');
  std::string_view rest = first_line;
  const auto width =
      static_cast<std::size_t>(std::clamp<std::int64_t>(ToNumber(TakeField(rest)), 0, 1000));
  const LockSurvey survey = MakeSurvey(TakeField(rest), input);
  const std::vector<ContenderView> queue = cli::DescribeQueue(survey);
  TryQueue(survey, queue);

  const bool with_names = width % 2 == 1;
  const cli::ViewStyle style{.width = width, .with_names = with_names};
  RequireHarmless(Render<cli::QueueText>({survey}, "/jobs", style), /*lines=*/true);
  for (const ContenderView& contender : queue) {
    RequireHarmless(cli::DescribeTarget("/jobs/nightly", contender), /*lines=*/false);
    RequireHarmless(cli::Listed(contender, 0), /*lines=*/false);
  }
  // A tree lists only held locks.
  std::vector<LockSurvey> held;
  if (survey.IsHeld()) held = {survey, survey};
  for (LockSurvey& lock : held) lock.in_tree = true;
  // The titles, a line for each lock, an empty line, and the number of locks.
  RequireLines(Render<cli::QueueText>(held, survey.path, style),
               held.empty() ? 1 : 3 + held.size());

  // One line for each LOCK, readable by a strict parser.
  const std::string json = Render<cli::QueueJson>({survey}, cli::QueueJson::Form::kLines);
  RequireLines(json, 1);
  Require(json.find_first_not_of(kPrintableAscii) == json.size() - 1, "JSON is ASCII");
  RequireHarmless(Render<cli::QueueDot>({survey}), /*lines=*/true);

  LockSurvey semaphore = survey;
  semaphore.kind = lock::LockKind::kSemaphore;
  if (with_names) semaphore.permit_limit = width + 1;
  RequireHarmless(Render<cli::QueueText>({semaphore}, "/jobs", style), /*lines=*/true);
  RequireLines(Render<cli::QueueJson>({semaphore}, cli::QueueJson::Form::kLines), 1);
  RequireHarmless(Render<cli::QueueDot>({semaphore}), /*lines=*/true);
}

}  // namespace zklock::fuzz
