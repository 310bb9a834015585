#include "commands/complete.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/exit_status.h"
#include "cli/text/printable.h"
#include "commands/session/console.h"
#include "commands/session/output.h"
#include "commands/session/session_driver.h"
#include "lock/data/contender_data.h"
#include "lock/operations/calls.h"
#include "lock/operations/lock_names.h"
#include "lock/survey/survey.h"
#include "process/loop/event_loop.h"
#include "protocol/lock_path.h"

namespace zklock::commands {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 300ms;
/// The part of kPatience that is reserved for closing the session. If that is not enough, the
/// session soon expires.
constexpr Duration kTimeToClose = 50ms;
constexpr Duration kSessionTimeout = 4s;

/// Thrown when the time for the servers has run out.
struct TimeIsOver {};

/// Runs `work(store, clock, serve)` over a session with `server`, and closes the session, all
/// within kPatience. `serve`: as for lock::Calls; throws TimeIsOver. Returns normally even if the
/// work fails.
template <typename F>
void RunBriefly(cli::ServerOptions server, process::Signals& signals, F work) {
  const SystemClock clock;
  const TimePoint begin = clock.Now();
  const TimePoint end = begin + kPatience - kTimeToClose;
  server.session_timeout = kSessionTimeout;
  server.connect_timeout = kPatience - kTimeToClose;
  process::EventLoop loop;
  SessionDriver session_driver(loop, server, clock);
  const auto serve = [&](EventSource& source, const std::function<bool()>& is_done) {
    loop.Add(source);
    (void)RunUntil(
        loop, signals, [&] { return is_done() || session_driver.IsHopeless(); }, end);
    loop.Remove(source);
    if (!is_done()) throw TimeIsOver{};
  };
  try {
    work(session_driver.session(), clock, serve);
  } catch (const TimeIsOver&) {
  } catch (const lock::OperationFailed&) {
  }
  session_driver.session().BeginClose();
  loop.RunUntil(begin + kPatience, [&] { return session_driver.session().IsClosed(); });
}

/// Returns whether a name from the servers, which others may have chosen, may begin a line: with
/// ':' it would be an instruction to the shell's script, with '-' an option.
bool MayBegin(const std::string& word) { return !word.starts_with(':') && !word.starts_with('-'); }

/// Returns the LOCKs that begin with the typed text, and how each is used. The paths are absolute
/// or relative to the root, like the typed text.
std::vector<cli::Candidate> FindLocks(const cli::CompleteLock& wanted, process::Signals& signals) {
  const bool absolute = wanted.typed.rfind('/', 0) == 0;
  // zklock would refuse such a path: see OptionReader::ResolveLock.
  const bool has_slash = wanted.typed.find('/') != std::string::npos;
  if (!absolute && has_slash && !wanted.server.has_own_root) return {};
  const std::string below = wanted.server.root == "/" ? "/" : wanted.server.root + "/";
  const std::string typed = absolute ? wanted.typed : below + wanted.typed;
  const auto above = lock::LockName::In(wanted.server.servers.chroot, protocol::ParentOf(typed));

  std::vector<lock::FoundLock> found;
  RunBriefly(wanted.server, signals, [&](auto& store, const Clock& clock, const auto& serve) {
    lock::Calls calls(store, clock, kPatience, serve);
    lock::FindLockNames(calls, above, found);
  });
  std::vector<cli::Candidate> locks;
  for (const lock::FoundLock& one : found) {
    const std::string& lock = one.path;
    // zklock would refuse some names. Names with unprintable characters would be misleading on the
    // command line.
    if (!lock.starts_with(typed) || cli::Printable(lock) != lock ||
        !std::holds_alternative<std::string>(protocol::CheckAbsolutePath(lock))) {
      continue;
    }
    if (wanted.only_used && one.held + one.waiting == 0) continue;
    const std::string word = absolute ? lock : lock.substr(below.size());
    if (MayBegin(word)) locks.push_back({word, cli::LockUse(one)});
  }
  std::sort(locks.begin(), locks.end(),
            [](const auto& a, const auto& b) { return a.word < b.word; });
  return locks;
}

/// Collects the IDs of the reservations, or the names of the contenders, that a survey finds.
class WordSink final : public lock::SurveySink {
 public:
  explicit WordSink(cli::CompleteFromQueue::What what) : what_(what) {}
  void OnEntry(const lock::QueueEntry& entry) override {
    const bool are_names = what_ == cli::CompleteFromQueue::What::kContenders;
    if (are_names) words_.insert(entry.name.full);
    if (!are_names && entry.reserved) words_.insert(entry.reserved->reservation.id);
  }
  [[nodiscard]] const std::set<std::string>& words() const { return words_; }

 private:
  const cli::CompleteFromQueue::What what_;
  std::set<std::string> words_;
};

/// Returns the IDs or names that begin with the typed text, in order.
std::vector<std::string> FindInQueue(const cli::CompleteFromQueue& wanted,
                                     process::Signals& signals) {
  using What = cli::CompleteFromQueue::What;
  // A contender's name is meaningful only within one LOCK.
  if (wanted.what == What::kContenders && wanted.lock.empty()) return {};
  // Reservations are at the head of a queue.
  constexpr std::size_t kMostRead = 64;
  const bool everywhere = wanted.lock.empty();
  WordSink sink(wanted.what);
  const lock::SurveyRequest request{
      .place = lock::LockName::In(wanted.server.servers.chroot,
                                  everywhere ? wanted.server.root : wanted.lock),
      .scope = everywhere ? lock::SurveyRequest::Scope::kTree : lock::SurveyRequest::Scope::kLock,
      .most_data = lock::kMostContenderData,
      .most_contenders = kMostRead,
      .most_in_tree = kMostRead,
      .connect_timeout = kPatience};
  RunBriefly(wanted.server, signals, [&](auto& store, const Clock& clock, const auto& serve) {
    lock::Survey survey(store, clock, request, &sink);
    serve(survey, [&survey] { return survey.IsOver(); });
  });
  std::vector<std::string> words;
  for (const std::string& word : sink.words()) {
    // Words with unprintable characters would be misleading on the command line.
    const bool is_plain = cli::Printable(word) == word;
    const bool may_be = !wanted.before.empty() || MayBegin(word);
    if (is_plain && may_be && word.starts_with(wanted.typed)) words.push_back(wanted.before + word);
  }
  return words;
}

std::string LinesOf(const std::vector<cli::Candidate>& candidates) {
  std::string text;
  for (const auto& [word, help] : candidates) {
    text += word + (help.empty() ? "" : "\t" + help) + "\n";
  }
  return text;
}

}  // namespace

int Complete(const cli::Completion& completion, process::Signals& signals) {
  std::string text;
  if (std::holds_alternative<cli::CompleteFile>(completion)) {
    text = ":files\n";
  } else if (const auto* command = std::get_if<cli::CompleteCommand>(&completion)) {
    text = ":command " + std::to_string(command->first_word) + "\n";
  } else if (const auto* lock = std::get_if<cli::CompleteLock>(&completion)) {
    text = LinesOf(FindLocks(*lock, signals));
  } else if (const auto* queue = std::get_if<cli::CompleteFromQueue>(&completion)) {
    for (const std::string& word : FindInQueue(*queue, signals)) text += word + "\n";
  } else {
    text = LinesOf(std::get<cli::CompleteWords>(completion).candidates);
  }
  Output output;
  output.Append(text);
  process::EventLoop loop;
  loop.Add(output);
  (void)RunUntil(loop, signals, [&output] { return output.IsDone(); });
  return kExitOk;
}

}  // namespace zklock::commands
