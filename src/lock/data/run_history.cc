#include "lock/data/run_history.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "lock/data/json_fields.h"
#include "protocol/reservation.h"

namespace zklock::lock {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using End = RunRecord::End;

constexpr std::string_view kLost = "lost";
// Real host and user names are shorter; with texts of realistic length, a hundred runs fit.
constexpr std::size_t kMostName = 64;
constexpr std::size_t kMostLabel = 128;
// More milliseconds than any run takes, but far from overflow.
constexpr std::int64_t kLongest = 1'000'000'000'000'000;

void PutText(json& object, const char* name, const std::string& text, std::size_t most) {
  const std::string_view kept = CutText(text, most);
  if (!kept.empty()) object[name] = kept;
}

void PutSpan(json& object, const char* name, const std::optional<milliseconds>& span) {
  if (span) object[name] = std::clamp<std::int64_t>(span->count(), 0, kLongest);
}

void PutTaker(json& object, const RunRecord& run) {
  PutText(object, "takenBy", run.taken_by, kMostLabel);
  PutText(object, "takenReason", run.taken_reason, kMostLabel);
}

std::string FormatRun(const RunRecord& run) {
  json object = {{"began", std::clamp<std::int64_t>(run.began.count(), 0, kLongest)},
                 {"token", run.token},
                 {"mode", protocol::ModeName(run.mode)}};
  PutSpan(object, "waited", run.waited);
  PutSpan(object, "duration", run.duration);
  if (run.status) object["status"] = *run.status;
  PutText(object, "host", run.host, kMostName);
  PutText(object, "user", run.user, kMostName);
  PutText(object, "label", run.label, kMostLabel);
  PutText(object, "id", run.id, protocol::kLongestReservationId);
  PutText(object, "reason", run.reason, kMostLabel);
  PutText(object, "cause", run.cause, kMostName);
  PutTaker(object, run);
  if (run.end == End::kNone) object["contender"] = run.contender;
  if (run.end == End::kLost) object["ended"] = kLost;
  return DumpJson(object);
}

/// Edits the line instead of formatting it anew, to keep any keys from later versions.
template <typename Put>
void PutEnd(std::string& line, Put put) {
  json object = json::parse(line);
  put(object);
  object.erase("contender");
  line = DumpJson(object);
}

std::optional<milliseconds> Span(const json& object, const char* name) {
  const auto count = NumberField(object, name, 0, kLongest);
  return count ? std::optional(milliseconds(*count)) : std::nullopt;
}

std::optional<RunRecord> ParseRun(std::string_view line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  const auto began = NumberField(object, "began", 0, kLongest);
  const auto token = NumberField(object, "token", 1, std::numeric_limits<std::int64_t>::max());
  const auto mode = protocol::ParseMode(TextField(object, "mode").value_or(""));
  if (!began || !token || !mode) return std::nullopt;
  RunRecord run{.began = protocol::ServerTime(*began),
                .waited = Span(object, "waited"),
                .duration = Span(object, "duration"),
                .host = TextField(object, "host").value_or(""),
                .user = TextField(object, "user").value_or(""),
                .label = TextField(object, "label").value_or(""),
                .token = *token,
                .mode = *mode,
                .contender = TextField(object, "contender").value_or(""),
                .id = TextField(object, "id").value_or(""),
                .reason = TextField(object, "reason").value_or(""),
                .cause = TextField(object, "cause").value_or(""),
                .taken_by = TextField(object, "takenBy").value_or(""),
                .taken_reason = TextField(object, "takenReason").value_or("")};
  if (const auto status = NumberField(object, "status", 0, 255)) {
    run.status = static_cast<int>(*status);
  }
  if (TextField(object, "ended") == kLost) {
    run.end = End::kLost;
  } else if (run.duration || object.contains("ended")) {
    run.end = End::kEnded;
  }
  return run;
}

}  // namespace

std::optional<RunHistory> RunHistory::Parse(std::string_view data) {
  if (data.size() > kMostHistoryData) return std::nullopt;
  const auto last = protocol::ParseLastRunData(data);
  if (!last) return std::nullopt;
  RunHistory history;
  history.success_ = last->success;
  std::string_view rest = last->below;
  TakeUntil(rest, '\n');  // the end of the first line
  while (!rest.empty()) {
    const std::string_view line = TakeUntil(rest, '\n');
    auto run = ParseRun(line);
    if (!run) return std::nullopt;
    history.entries_.push_back({*std::move(run), std::string(line)});
  }
  return history;
}

const RunRecord* RunHistory::Find(std::int64_t token) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& one) { return one.run.token == token; });
  return found == entries_.end() ? nullptr : &found->run;
}

void RunHistory::AddSuccess(const protocol::LastSuccess& success) {
  if (!success_ || success_->began < success.began) success_ = success;
}

void RunHistory::Enter(const RunRecord& run) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& one) { return one.run.token == run.token; });
  Entry entry{run, FormatRun(run)};
  if (found == entries_.end()) {
    entries_.insert(entries_.begin(), std::move(entry));
  } else {
    *found = std::move(entry);
  }
}

void RunHistory::EnterLost(const std::vector<std::string>& present, std::int64_t own) {
  for (Entry& one : entries_) {
    RunRecord& run = one.run;
    if (run.end != End::kNone || run.token == own) continue;
    if (std::find(present.begin(), present.end(), run.contender) != present.end()) continue;
    run.end = End::kLost;
    PutEnd(one.line, [](json& object) { object["ended"] = kLost; });
  }
}

bool RunHistory::EnterTaken(std::int64_t token, const std::string& by, const std::string& reason) {
  for (Entry& one : entries_) {
    RunRecord& run = one.run;
    if (run.token != token || run.end == End::kEnded) continue;
    run.end = End::kLost;
    run.taken_by = by;
    run.taken_reason = reason;
    PutEnd(one.line, [&run](json& object) {
      object["ended"] = kLost;
      PutTaker(object, run);
    });
    return true;
  }
  return false;
}

void RunHistory::EnterEnd(std::int64_t token, milliseconds duration) {
  for (Entry& one : entries_) {
    if (one.run.token != token || one.run.end != End::kNone) continue;
    one.run.end = End::kEnded;
    one.run.duration = duration;
    PutEnd(one.line, [&](json& object) { PutSpan(object, "duration", duration); });
  }
}

std::string RunHistory::Format(std::size_t most_runs) const {
  std::string data = success_ ? protocol::FormatLastSuccess(*success_) : "";
  std::size_t runs = 0;
  for (const Entry& one : entries_) {
    if (runs == most_runs || data.size() + one.line.size() + 1 > kMostHistoryData) break;
    data += '\n' + one.line;
    ++runs;
  }
  return data;
}

}  // namespace zklock::lock
