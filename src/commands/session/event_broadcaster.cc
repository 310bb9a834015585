#include "commands/session/event_broadcaster.h"

#include <utility>

#include "protocol/lease.h"
#include "protocol/lock_path.h"

namespace zklock::commands {
namespace {

/// The reservation's end, for a message. None if it has no end, or has ended because a permit is
/// gone.
std::optional<std::int64_t> EndOf(const lock::Reserved& reserved) {
  if (reserved.is_incomplete || !reserved.until) return std::nullopt;
  return reserved.until->count();
}

}  // namespace

void EventBroadcaster::Publish(const cli::Event& event) {
  for (cli::EventListener* listener : listeners_) listener->OnEvent(event);
}

void EventBroadcaster::PublishConnected(const zookeeper::Session& session) {
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

void QueueEvents::OnConnected() { events_.PublishConnected(session_); }

void QueueEvents::OnQueued(const lock::Ticket& ticket) {
  const bool is_requeued = places_lost_.count(ticket.lock.display_path()) != 0;
  if (std::exchange(*lacks_chroot_, false)) {
    events_.Publish(cli::ChrootCreatedEvent{ticket.lock.chroot});
  }
  events_.Publish(cli::QueuedEvent{ticket, is_requeued});
}

void QueueEvents::OnJoining(const lock::LockName& lock, const std::string& queue) {
  if (on_joining_) on_joining_();
  if (expects_acl_) ReportIfOpen(lock, queue);
  if (!lock.chroot.empty()) LookForChroot(lock.chroot);
}

/// Finds out whether the chroot exists. The servers answer before it is created: if LOCK does not
/// exist, the znodes above it are created only after joining has failed once.
void QueueEvents::LookForChroot(const std::string& chroot) {
  session_.Get(chroot, zookeeper::Watch::kNo,
               [lacks = lacks_chroot_](const zookeeper::GetReply& reply) {
                 if (reply.error == zookeeper::Error::kNoNode) *lacks = true;
               });
}

/// Anyone who may delete a contender or write LOCK's record can make two holders run at the same
/// time. Servers answer in order, so the report precedes the answer to the create. If LOCK does not
/// exist yet, this is called again with the next attempt to join it.
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

void QueueEvents::OnWaiting(const lock::LockName& lock, const std::string& predecessor,
                            const lock::Ahead& ahead) {
  waits_for_ = lock.display_path();
  events_.Publish(
      cli::WaitingEvent{lock.display_path(), predecessor, ahead.contenders, ahead.waiting});
}

void QueueEvents::OnPreempted(const lock::LockName& lock, const lock::Preempted& preempted) {
  if (preempted.asked == 0 && preempted.left.empty()) return;
  events_.Publish(cli::PreemptedEvent{lock.display_path(), preempted});
}

void QueueEvents::OnFirst(const lock::LockName& lock) {
  events_.Publish(cli::FirstEvent{lock.display_path()});
}

void QueueEvents::OnPlaceLost(const lock::LockName& lock) {
  places_lost_.insert(lock.display_path());
  events_.Publish(cli::PlaceLostEvent{.lock = lock.display_path()});
}

void QueueEvents::OnReservationExpired(const lock::LockName& lock, const lock::Reserved& reserved) {
  events_.Publish(cli::ReservationEndedEvent{
      .lock = lock.display_path(), .id = reserved.reservation.id, .until_ms = EndOf(reserved)});
}

void QueueEvents::OnReservationOverdue(const lock::LockName& lock, const std::string& path,
                                       const lock::Reserved& reserved) {
  if (!overdue_.insert(path).second) return;
  events_.Publish(cli::ReservationOverdueEvent{
      .lock = lock.display_path(),
      .id = reserved.reservation.id,
      .until_ms = EndOf(reserved),
      .right_path = lock.DisplayPath(std::string(protocol::ParentOf(path)))});
}

void QueueEvents::OnIncompatible(const lock::LockName& lock,
                                 const protocol::IncompatibleContender& incompatible) {
  events_.Publish(cli::IncompatibleArrivedEvent{lock.display_path(), incompatible});
}

void QueueEvents::OnOwnData(const std::string& contender, const std::string& data) {
  auto request = lock::FindReleaseRequest(data);
  if (!request) return;
  Forget(contender);
  asked_.push_back({contender, *std::move(request)});
}

void HoldEvents::OnLease(TimePoint lease_end, Duration grace) {
  if (lease_sink_) lease_sink_(lease_end, grace);
}

void HoldEvents::OnConnected() { events_.PublishConnected(session_); }

void HoldEvents::OnSuspect() { events_.Publish(cli::SuspectEvent{locks_}); }

void HoldEvents::OnConfirmed() { events_.Publish(cli::ConfirmedEvent{locks_}); }

void HoldEvents::OnOwnData(const std::string& data) {
  auto request = lock::FindReleaseRequest(data);
  if (request && !request->only_waiting) release_request_ = std::move(request);
}

}  // namespace zklock::commands
