#include "commands/session/event_broadcaster.h"

#include <algorithm>
#include <utility>

#include "base/overloaded.h"
#include "protocol/lease.h"

namespace zklock::commands {

void EventBroadcaster::Publish(const cli::Event& event) {
  for (cli::EventListener* listener : listeners_) listener->OnEvent(event);
}

void EventBroadcaster::PublishConnected(const zookeeper::Session& session) {
  const std::pair connection(session.session_id(), session.connects());
  if (std::exchange(connection_, connection) == connection) return;
  const cli::ConnectedEvent connected = {.server = session.connected_server(),
                                         .granted = session.granted_timeout(),
                                         .effective = session.lease().timeout(),
                                         .before = session.timeout_before()};
  Publish(connected);
  const bool is_shorter = connected.before && connected.effective < *connected.before;
  const bool is_usable = connected.effective >= protocol::kLeastSessionTimeout;
  if (is_shorter && is_usable) WarnOfShortSession(connected.effective);
}

void EventBroadcaster::WarnOfShortSession(Duration timeout) {
  if (timeout < protocol::kComfortableSessionTimeout) Publish(cli::ShortSessionEvent{timeout});
}

void QueueEvents::OnEvent(const lock::AcquireEvent& event) {
  std::visit(
      Overloaded{[this](const lock::SessionAcceptedEvent&) { events_.PublishConnected(session_); },
                 [this](const lock::JoiningEvent& joining) { OnJoining(joining); },
                 [this](lock::QueuedEvent queued) {
                   const lock::LockName& lock = queued.ticket.lock;
                   if (std::exchange(*lacks_chroot_, false)) {
                     events_.Publish(cli::ChrootCreatedEvent{lock.chroot});
                   }
                   queued.is_requeued = places_lost_.count(lock.display_path()) != 0;
                   events_.Publish(queued);
                 },
                 [this](const lock::WaitingEvent& waiting) {
                   waits_for_ = waiting.lock;
                   events_.Publish(waiting);
                 },
                 [this](const lock::PreemptedEvent& preempted) {
                   const lock::Preempted& result = preempted.preempted;
                   if (result.asked != 0 || !result.left.empty()) events_.Publish(preempted);
                 },
                 [this](const lock::PlaceLostEvent& lost) {
                   places_lost_.insert(lost.lock);
                   events_.Publish(lost);
                 },
                 [this](const lock::QueueLeftEvent& left) { OnLeft(left); },
                 [this](const lock::ReservationOverdueEvent& overdue) {
                   if (overdue_.insert(overdue.path).second) events_.Publish(overdue);
                 },
                 [this](const lock::OwnDataEvent& own) {
                   auto request = lock::FindReleaseRequest(own.data);
                   if (!request) return;
                   Forget(own.contender);
                   asked_.push_back({own.contender, *std::move(request)});
                 },
                 [this](const auto& other) { events_.Publish(other); }},
      event);
}

void QueueEvents::OnJoining(const lock::JoiningEvent& joining) {
  if (on_joining_) on_joining_();
  if (expects_acl_) ReportIfOpen(joining.lock, joining.queue);
  if (!joining.lock.chroot.empty()) LookForChroot(joining.lock.chroot);
}

void QueueEvents::OnLeft(lock::QueueLeftEvent left) {
  left_.emplace(left.lock, left.why);
  if (waits_for_ == left.lock) waits_for_.clear();
  const auto asked = std::find_if(asked_.begin(), asked_.end(), [&](const Asked& one) {
    return one.contender == left.contender;
  });
  if (asked != asked_.end()) left.request = asked->request;
  events_.Publish(left);
}

/// Finds out whether the chroot exists. The servers answer before zklock creates it: if LOCK does
/// not exist, the znodes above it are created only after joining has failed once.
void QueueEvents::LookForChroot(const std::string& chroot) {
  session_.Get(chroot, zookeeper::Watch::kNo,
               [lacks = lacks_chroot_](const zookeeper::GetReply& reply) {
                 if (reply.error == zookeeper::Error::kNoNode) *lacks = true;
               });
}

/// Reports a LOCK where everyone may delete contenders or write the record, since either could make
/// two holders run at the same time. Servers answer in order, so the report precedes the answer to
/// the create. If LOCK does not exist yet, this is called again with the next attempt to join it.
void QueueEvents::ReportIfOpen(const lock::LockName& lock, const std::string& queue) {
  session_.GetAcl(queue, [&events = events_, reported = open_,
                          name = lock.display_path()](const zookeeper::AclReply& reply) {
    unsigned open = 0;
    for (const zookeeper::AclEntry& entry : reply.entries) {
      if (entry.scheme == "world") open |= entry.rights;
    }
    std::string rights = (open & zookeeper::kMayWrite) != 0 ? "WRITE" : "";
    if ((open & zookeeper::kMayDelete) != 0) rights += rights.empty() ? "DELETE" : ", DELETE";
    if (rights.empty() || !reported->insert(name).second) return;
    events.Publish(cli::OpenLockEvent{name, rights});
  });
}

void HoldEvents::OnEvent(const lock::HoldEvent& event) {
  std::visit(
      Overloaded{
          [this](const lock::SessionAcceptedEvent&) { events_.PublishConnected(session_); },
          [this](const lock::LeaseEvent& lease) {
            if (lease_sink_) lease_sink_(lease.end, lease.grace);
          },
          [this](const lock::AnswerOverdueEvent&) { events_.Publish(cli::SuspectEvent{locks_}); },
          [this](const lock::ProvenAgainEvent&) { events_.Publish(cli::ConfirmedEvent{locks_}); },
          [this](const lock::OwnDataEvent& own) {
            auto request = lock::FindReleaseRequest(own.data);
            if (request && !request->only_waiting) release_request_ = std::move(request);
          }},
      event);
}

}  // namespace zklock::commands
