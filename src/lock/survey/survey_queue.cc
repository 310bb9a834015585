#include "lock/survey/survey_queue.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <variant>

#include "lock/data/run_history.h"
#include "protocol/lock_path.h"
#include "protocol/release_record.h"
#include "protocol/run_records.h"
#include "protocol/semaphore.h"

namespace zklock::lock {

using zookeeper::Error;

SurveyQueue::SurveyQueue(LockSurvey lock, const LockChildren& children, const QueueReads& reads)
    : lock_(std::move(lock)), path_(children.lock()), reads_(reads) {
  if (reads.with_lock && lock_.exists) {
    records_.push_back({children.lock(), reads.most_data, "read", &SurveyQueue::TakeLock});
  }
  if (reads.with_last_run && children.children().Has(protocol::kLastRunChild)) {
    records_.push_back({protocol::ChildPath(children.lock(), protocol::kLastRunChild), kMostLastRun,
                        "read the last run under", &SurveyQueue::TakeLastRun});
  }
  if (reads.with_last_start && children.children().Has(protocol::kLastStartChild)) {
    records_.push_back({protocol::ChildPath(children.lock(), protocol::kLastStartChild),
                        reads.most_data, "read the last start under", &SurveyQueue::TakeLastStart});
  }
  Ignore("", children.children());
  if (children.semaphore()) {
    AddSemaphore(children.lock(), *children.semaphore());
  } else {
    AddQueue(children.lock(), children.children());
  }
}

void SurveyQueue::AddQueue(const std::string& lock, const protocol::Children& children) {
  if (children.Has(protocol::kSimpleName)) {
    const std::string name(protocol::kSimpleName);
    entries_.push_back({.name = {.full = name}, .path = protocol::ChildPath(lock, name)});
    std::erase(lock_.ignored_children, name);
  }
  Add(lock, children, false);
  states_.resize(entries_.size());
}

void SurveyQueue::AddSemaphore(const std::string& lock, const SemaphoreChildren& semaphore) {
  const std::string permits(protocol::kPermitsChild);
  const std::string turnstile(protocol::kTurnstileChild);
  lock_.kind = LockKind::kSemaphore;
  lock_.permit_limit = semaphore.permit_limit;
  AddPermits(protocol::PermitsPath(lock), semaphore.permits);
  turnstile_ = entries_.size();
  Add(protocol::TurnstilePath(lock), semaphore.turnstile, true);
  // Read only if a stray is found there.
  records_.push_back(
      {protocol::TurnstilePath(lock), 0, "read", &SurveyQueue::TakeTurnstile, State::kRead});
  std::erase(lock_.ignored_children, permits);
  std::erase(lock_.ignored_children, turnstile);
  Ignore(permits + "/", semaphore.permits);
  Ignore(turnstile + "/", semaphore.turnstile);
  states_.resize(entries_.size());
  settled_ = false;
  Settle();
}

void SurveyQueue::Add(const std::string& parent, const protocol::Children& children,
                      bool in_turnstile) {
  for (protocol::ContenderName& name : protocol::Queue(children)) {
    std::string path = protocol::ChildPath(parent, name.full);
    entries_.push_back(
        {.name = std::move(name), .path = std::move(path), .in_turnstile = in_turnstile});
  }
}

/// Adds one entry for each run.
void SurveyQueue::AddPermits(const std::string& parent, const protocol::Children& children) {
  const protocol::Contenders permits(children);
  Add(parent, children, false);
  if (protocol::RunsOf(permits).size() == permits.size()) return;
  std::vector<QueueEntry> runs;
  std::map<std::string, std::size_t, std::less<>> known;
  for (QueueEntry& entry : entries_) {
    const auto view = protocol::ViewContenderName(entry.name.full);
    const auto [run, is_new] = known.try_emplace(std::string(view->run()), runs.size());
    if (is_new) {
      runs.push_back(std::move(entry));
    } else {
      runs[run->second].more.push_back(std::move(entry.path));
    }
  }
  entries_ = std::move(runs);
}

void SurveyQueue::Ignore(const std::string& above, const protocol::Children& children) {
  auto& ignored = lock_.ignored_children;
  for (const std::string_view child : children) {
    if (!protocol::ViewContenderName(child)) ignored.push_back(std::string(above).append(child));
  }
  std::sort(ignored.begin(), ignored.end());
}

bool SurveyQueue::IsOut(std::size_t index) const {
  return states_[index] == State::kGone || passing_ == index ||
         (states_[index] == State::kRead && !entries_[index].IsContender());
}

// ---- a semaphore ----------------------------------------------------------------------------

std::optional<std::size_t> SurveyQueue::LastPermit() const {
  for (std::size_t index = turnstile_; index > 0; --index) {
    if (!IsOut(index - 1)) return index - 1;
  }
  return std::nullopt;
}

std::optional<std::size_t> SurveyQueue::FirstInTurnstile() const {
  for (std::size_t index = turnstile_; index < entries_.size(); ++index) {
    if (!IsOut(index)) return index;
  }
  return std::nullopt;
}

std::size_t SurveyQueue::CountPermits() const {
  std::size_t count = 0;
  for (std::size_t index = 0; index < turnstile_; ++index) {
    count += IsOut(index) ? 0U : 1 + entries_[index].more.size();
  }
  return count;
}

bool SurveyQueue::HasPermit(const QueueEntry& in_turnstile, const QueueEntry& permit) const {
  if (in_turnstile.readable && permit.readable) {
    return in_turnstile.stat.ephemeral_owner == permit.stat.ephemeral_owner &&
           in_turnstile.stat.created_zxid < permit.stat.created_zxid;
  }
  // If there are more permits than the limit, the last one's contender is still in the turnstile.
  return lock_.permit_limit && CountPermits() > *lock_.permit_limit;
}

/// Returns whether the contender that is passing the turnstile waits: it does unless its permit is
/// within the limit.
bool SurveyQueue::LastPermitWaits() const {
  return passing_ && CountPermits() > lock_.permit_limit.value_or(1);
}

void SurveyQueue::Settle() {
  if (settled_) return;
  const auto permit = LastPermit();
  const auto first = FirstInTurnstile();
  if (permit && first) {
    if (states_[*permit] != State::kRead || states_[*first] != State::kRead) return;
    if (HasPermit(entries_[*first], entries_[*permit])) {
      passing_ = first;
      const QueueEntry& joined = entries_[*first];
      entries_[*permit].turnstile_name = joined.name.full;
      if (joined.readable) entries_[*permit].turnstile_ms = joined.stat.created_ms;
      if (*first < next_) --candidates_;
    }
  }
  settled_ = true;
}

std::optional<Predecessor> SurveyQueue::WaitsForPermit(std::size_t index) const {
  const bool has_permit = index < turnstile_;
  if (reported_.empty() || (has_permit && (index != LastPermit() || !LastPermitWaits()))) {
    return std::nullopt;
  }
  if (!has_permit) {
    // A contender in the turnstile waits for the one before it; the first one waits for a permit.
    const QueueEntry& before = entries_[reported_.back()];
    if (before.Waits()) return Predecessor{reported_.size(), before.name.full, before.path};
    if (!lock_.permit_limit || CountPermits() < *lock_.permit_limit) return std::nullopt;
  }
  const QueueEntry& first = entries_[reported_.front()];
  return Predecessor{1, first.name.full, first.path, true};
}

// ---- reading ----------------------------------------------------------------------------------

void SurveyQueue::Forget() {
  next_ = candidates_ = unknown_ = 0;
  const auto forget = [](State& state) {
    if (state == State::kAsked) state = State::kUnasked;
  };
  for (Record& record : records_) forget(record.state);
  for (auto& [contender, state] : unlisted_) forget(state);
  for (State& state : states_) forget(state);
}

std::optional<SurveyQueue::Read> SurveyQueue::NextRead() {
  for (Record& record : records_) {
    if (record.state != State::kUnasked) continue;
    record.state = State::kAsked;
    return Read{record.path, record.most, record.operation,
                [this, &record](const zookeeper::GetReply& reply) {
                  record.state = State::kRead;
                  return (this->*record.take)(reply);
                }};
  }
  for (auto& [contender, state] : unlisted_) {
    if (state != State::kUnasked) continue;
    state = State::kAsked;
    const auto view = protocol::ViewContenderName(contender);
    const bool is_permit = view && view->mark == protocol::Mark::kPermit;
    const std::string parent = is_permit ? protocol::PermitsPath(path_) : path_;
    return Read{protocol::ChildPath(parent, contender), 0, "read a contender in",
                [this, &contender = contender, &state = state](const zookeeper::GetReply& reply) {
                  const bool is_gone = reply.error == Error::kNoNode;
                  state = is_gone ? State::kGone : State::kRead;
                  if (is_gone) OnGone(contender);
                  return is_gone || reply.error == Error::kNone ||
                         zookeeper::IsRefusal(reply.error);
                }};
  }
  const auto index = NextEntry();
  if (!index) return std::nullopt;
  states_[*index] = State::kAsked;
  return Read{entries_[*index].path, reads_.most_data, "read a contender in",
              [this, index](const zookeeper::GetReply& reply) { return TakeEntry(*index, reply); }};
}

bool SurveyQueue::TakeLock(const zookeeper::GetReply& reply) {
  // Even without its data, the rest of the LOCK can be reported.
  lock_.readable = reply.error == Error::kNone;
  if (!lock_.readable) return true;
  lock_.stat = reply.stat;
  lock_.data = reply.data.substr(0, reads_.most_data);
  return true;
}

bool SurveyQueue::TakeTurnstile(const zookeeper::GetReply& reply) {
  turnstile_children_made_ = reply.stat.children_made;
  return reply.error == Error::kNone || reply.error == Error::kNoNode ||
         zookeeper::IsRefusal(reply.error);
}

bool SurveyQueue::TakeLastRun(const zookeeper::GetReply& reply) {
  lock_.last_run.reset();
  switch (reply.error) {
    case Error::kNone:
      lock_.last_run = reply.data.substr(0, kMostLastRun);
      lock_.last_run_stat = reply.stat;
      SeekUnlisted();
      return true;
    case Error::kNoNode:
      return true;
    case Error::kNoAuth:
    case Error::kAuthFailed:
    case Error::kAuthRequired:
      lock_.last_run_refused = true;
      return true;
    default:
      return false;
  }
}

/// Looks for runs that have joined since the children were listed: the record was read after that.
void SurveyQueue::SeekUnlisted() {
  const auto history = RunHistory::Parse(*lock_.last_run);
  if (!history) return;
  for (const auto& [run, line] : history->entries()) {
    const std::string& contender = run.contender;
    if (run.end != RunRecord::End::kNone || unlisted_.size() == kMostRuns) continue;
    const bool is_listed =
        std::any_of(entries_.begin(), entries_.end(),
                    [&contender](const QueueEntry& entry) { return entry.name.full == contender; });
    if (is_listed) continue;
    // Anyone may have written the record.
    const bool is_name =
        contender == protocol::kSimpleName || protocol::ViewContenderName(contender).has_value();
    const auto path = protocol::CheckAbsolutePath("/" + contender);
    const bool is_child =
        contender.find('/') == std::string::npos && std::holds_alternative<std::string>(path);
    if (is_name && is_child) unlisted_.try_emplace(contender, State::kUnasked);
  }
}

/// Reads the record again once a contender is gone. The end of its run is recorded before or
/// together with the deletion, so the run was lost only if its end is still not recorded.
void SurveyQueue::OnGone(const std::string& contender) {
  if (!lock_.last_run || lock_.last_run->find(contender) == std::string::npos) return;
  ReadAgain(&SurveyQueue::TakeLastRun);
}

void SurveyQueue::ReadAgain(Take take) {
  for (Record& record : records_) {
    if (record.state == State::kRead && record.take == take) record.state = State::kUnasked;
  }
}

bool SurveyQueue::TakeLastStart(const zookeeper::GetReply& reply) {
  lock_.last_start = protocol::ParseStartRecord(reply.data);
  lock_.last_started = protocol::ServerTime(reply.stat.modified_ms);
  return reply.error == Error::kNone || reply.error == Error::kNoNode ||
         zookeeper::IsRefusal(reply.error);
}

std::optional<std::size_t> SurveyQueue::NextEntry() {
  if (!settled_) {
    // Read in this order: if the contender has left the turnstile and its permit still exists, the
    // permit is held. If the contender had given up, both would be gone.
    for (const auto& index : {FirstInTurnstile(), LastPermit()}) {
      if (index && states_[*index] == State::kUnasked) return index;
    }
  }
  while (next_ < entries_.size() && candidates_ < reads_.most_contenders) {
    const std::size_t index = next_++;
    if (!IsOut(index)) ++candidates_;
    if (states_[index] == State::kUnasked) return index;
  }
  while (unknown_ < entries_.size()) {
    const std::size_t index = unknown_++;
    const bool is_unknown = entries_[index].name.mark == protocol::Mark::kNone;
    if (is_unknown && states_[index] == State::kUnasked) return index;
  }
  return std::nullopt;
}

bool SurveyQueue::TakeEntry(std::size_t index, const zookeeper::GetReply& reply) {
  QueueEntry& entry = entries_[index];
  State& state = states_[index];
  state = State::kRead;
  switch (reply.error) {
    case Error::kNone:
      entry.readable = true;
      entry.stat = reply.stat;
      entry.data = reply.data.substr(0, reads_.most_data);
      entry.reserved = FindReservation(entry.name.full, reply.data, reply.stat);
      if (entry.reserved) {
        entry.reserved->is_incomplete = 1 + entry.more.size() < entry.reserved->take;
      }
      break;
    case Error::kNoNode:
      state = State::kGone;
      OnGone(entry.name.full);
      break;
    case Error::kNoAuth:
    case Error::kAuthFailed:
    case Error::kAuthRequired:
      break;
    default:
      return false;
  }
  if (IsOut(index) && index < next_) --candidates_;
  const bool is_stray = state == State::kRead && !entry.IsContender();
  if (is_stray && entry.in_turnstile && turnstile_children_made_ == 0) {
    ReadAgain(&SurveyQueue::TakeTurnstile);
  }
  Settle();
  return true;
}

// ---- reporting --------------------------------------------------------------------------------

bool SurveyQueue::ReportContenders(SurveySink& sink) {
  const bool are_read = std::all_of(records_.begin(), records_.end(), [](const Record& record) {
    return record.state == State::kRead;
  });
  const bool are_sought = std::all_of(unlisted_.begin(), unlisted_.end(), [](const auto& one) {
    return one.second == State::kRead || one.second == State::kGone;
  });
  if (!are_read || !are_sought || !settled_) return false;
  for (; reporting_ < entries_.size(); ++reporting_) {
    if (passing_ == reporting_) continue;
    const bool enough = reported_.size() >= reads_.most_contenders;
    switch (states_[reporting_]) {
      case State::kAsked:
        return false;
      case State::kUnasked:
        if (!enough) return false;
        continue;
      case State::kGone:
        continue;
      case State::kRead:
        break;
    }
    if (!entries_[reporting_].IsContender()) {
      others_.push_back(reporting_);
    } else if (!enough) {
      if (!sink.WantsMore()) return false;
      ReportEntry(reporting_, sink);
    }
  }
  return true;
}

void SurveyQueue::ReportEntry(std::size_t index, SurveySink& sink) {
  QueueEntry& entry = entries_[index];
  if (!announced_) ReportLock(sink);
  if (lock_.IsSemaphore()) {
    entry.waits_for = WaitsForPermit(index);
  } else {
    // WaitsFor() counts its calls. A permit is here only if LOCK is the `leases` of a semaphore,
    // and permits do not wait for each other.
    auto predecessor = WaitsFor(index);
    if (entry.name.mark != protocol::Mark::kPermit) entry.waits_for = std::move(predecessor);
  }
  reported_.push_back(index);
  entry.position = reported_.size();
  sink.OnEntry(entry);
  std::string().swap(entry.data);
}

std::optional<Predecessor> SurveyQueue::WaitsFor(std::size_t index) {
  const auto before = predecessors_.Next(entries_[index].name);
  if (!before) return std::nullopt;
  const QueueEntry& predecessor = entries_[reported_[*before]];
  return Predecessor{*before + 1, predecessor.name.full, predecessor.path};
}

void SurveyQueue::ReportLock(SurveySink& sink) {
  announced_ = true;
  Count();
  if (!lock_.kind && lock_.IsHeld()) lock_.kind = KindOfQueue();
  sink.OnLock(lock_);
}

LockKind SurveyQueue::KindOfQueue() const {
  LockKind kind = LockKind::kMutex;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const protocol::ContenderName& name = entries_[i].name;
    if (IsOut(i)) continue;
    if (name.full == protocol::kSimpleName) return LockKind::kSimple;
    const bool shares = name.reads() || name.mark == protocol::Mark::kCuratorWrite;
    if (shares) kind = LockKind::kReadWrite;
  }
  return kind;
}

std::vector<std::string> SurveyQueue::Strays() const {
  std::vector<std::string> names;
  for (const std::size_t index : others_) names.push_back(BelowLock(entries_[index]));
  std::sort(names.begin(), names.end());
  return names;
}

std::string SurveyQueue::BelowLock(const QueueEntry& entry) const {
  return entry.path.substr(protocol::ChildPath(path_, "").size());
}

/// Returns the lowest number that a new contender can get, in the turnstile or in the LOCK itself.
/// The metadata may be slightly older than the list.
std::int64_t SurveyQueue::NextNumber(bool in_turnstile) const {
  std::int64_t next = in_turnstile ? turnstile_children_made_ : lock_.stat.children_made;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const QueueEntry& entry = entries_[i];
    if (entry.in_turnstile == in_turnstile && !IsOut(i))
      next = std::max(next, entry.name.number + 1);
  }
  return next;
}

/// Returns whether a znode that no session owns is ahead of every new contender. A znode such as
/// `build-2024010203` may be a LOCK, with a number that no contender will ever reach. No run uses
/// the root of all znodes as its LOCK.
bool SurveyQueue::Blocks(const QueueEntry& entry) const {
  if (path_ == "/") return false;
  const bool is_permit = lock_.IsSemaphore() && !entry.in_turnstile;
  if (entry.name.full == protocol::kSimpleName || is_permit) return false;
  return entry.name.number < NextNumber(entry.in_turnstile);
}

bool SurveyQueue::IsBlocked() const {
  // Children with numbers may also be LOCKs below a znode that nobody uses as a LOCK.
  const bool is_lock = IsLock();
  return std::any_of(others_.begin(), others_.end(), [this, is_lock](std::size_t index) {
    const QueueEntry& entry = entries_[index];
    return (is_lock || entry.name.mark != protocol::Mark::kNone) && Blocks(entry);
  });
}

bool SurveyQueue::IsLock() const {
  const auto& ignored = lock_.ignored_children;
  return announced_ || lock_.IsSemaphore() ||
         std::any_of(ignored.begin(), ignored.end(), protocol::IsRecordChild) ||
         protocol::ParseLockData(lock_.data).has_value();
}

bool SurveyQueue::HasOthers() const {
  const auto& ignored = lock_.ignored_children;
  return !others_.empty() || !std::all_of(ignored.begin(), ignored.end(), protocol::IsRecordChild);
}

void SurveyQueue::ReportEnd(SurveySink& sink) {
  // A znode `lock` without a session is reported as an ignored child.
  const auto simple = std::find_if(others_.begin(), others_.end(), [&](std::size_t index) {
    return entries_[index].name.full == protocol::kSimpleName;
  });
  if (simple != others_.end()) {
    auto& ignored = lock_.ignored_children;
    const std::string& name = entries_[*simple].name.full;
    ignored.insert(std::lower_bound(ignored.begin(), ignored.end(), name), name);
    others_.erase(simple);
  }
  if (!announced_) ReportLock(sink);
  for (const std::size_t index : others_) {
    QueueEntry& entry = entries_[index];
    if (Blocks(entry)) entry.blocking = BelowLock(entry);
    sink.OnEntry(entry);
  }
  FindRunning();
  FindIncompatible();
  Count();
  sink.OnLockEnd(lock_);
}

void SurveyQueue::FindIncompatible() {
  // A child that no session owns is not a contender, whatever its name.
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!IsOut(i) && !lock_.IsSemaphore()) names.push_back(entries_[i].name.full);
  }
  lock_.incompatible = protocol::FindIncompatible(protocol::Contenders(names));
}

void SurveyQueue::FindRunning() {
  const auto history = RunHistory::Parse(lock_.last_run.value_or(""));
  if (!history) return;
  for (const auto& entry : history->entries()) {
    if (entry.run.end != RunRecord::End::kNone) continue;
    const auto unlisted = unlisted_.find(entry.run.contender);
    if (unlisted != unlisted_.end() && unlisted->second == State::kRead) {
      lock_.running.push_back(entry.run.contender);
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (IsOut(i) || entries_[i].name.full != entry.run.contender) continue;
      lock_.running.push_back(entry.run.contender);
    }
  }
}

/// Counts the contenders known so far.
void SurveyQueue::Count() {
  if (lock_.IsSemaphore()) {
    const bool one_waits = LastPermitWaits();
    lock_.held = lock_.waiting = 0;
    lock_.used = CountPermits();
    for (std::size_t i = 0; i < turnstile_; ++i) lock_.held += IsOut(i) ? 0U : 1U;
    if (one_waits) {
      --lock_.held;
      ++lock_.waiting;
      lock_.used -= 1 + entries_[*LastPermit()].more.size();
    }
    for (std::size_t i = turnstile_; i < entries_.size(); ++i) lock_.waiting += IsOut(i) ? 0U : 1U;
    return;
  }
  protocol::Predecessors order;
  lock_.held = lock_.waiting = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (IsOut(i)) continue;
    const bool waits = order.Next(entries_[i].name).has_value();
    ++(waits && entries_[i].name.mark != protocol::Mark::kPermit ? lock_.waiting : lock_.held);
  }
}

}  // namespace zklock::lock
