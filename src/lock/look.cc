#include "lock/look.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "protocol/lock_path.h"
#include "protocol/queue.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;
using zookeeper::Watch;

// Of the first one's data: anyone may have written a megabyte there.
constexpr std::size_t kMostDataKept = 4096;

}  // namespace

void Look::Begin(const std::string& own, std::function<void(const std::optional<Glance>&)> done) {
  done_ = std::move(done);
  glance_ = {};
  if (own != own_) own_created_ms_.reset();
  own_ = own;
  if (!own_created_ms_) {
    store_.Get(own_, Watch::kNo, scope_.Wrap([this](const zookeeper::GetReply& reply) {
      if (reply.error == Error::kNone) own_created_ms_ = reply.stat.created_ms;
    }));
  }
  if (protocol::ParentOf(own_) == lock_.path) {
    return store_.List(lock_.path, Watch::kNo,
                       scope_.Wrap([this](const zookeeper::ListReply& reply) { OnListed(reply); }));
  }
  store_.List(lock_.path + "/" + std::string(protocol::kLeases), Watch::kNo,
              scope_.Wrap([this](const zookeeper::ListReply& reply) { leases_ = reply; }));
  store_.List(lock_.path + "/" + std::string(protocol::kTurnstile), Watch::kNo,
              scope_.Wrap([this](const zookeeper::ListReply& reply) { OnPermitsListed(reply); }));
}

void Look::OnListed(const zookeeper::ListReply& reply) {
  if (reply.error != Error::kNone) return End(false);
  const auto queue = protocol::Queue(reply.children);
  const auto own = std::find_if(queue.begin(), queue.end(), [&](const auto& contender) {
    return contender.full == protocol::BaseOf(own_);
  });
  // Not there: gone, or behind the server's times.
  if (own == queue.begin() || own == queue.end()) return End(false);
  glance_.ahead = static_cast<std::size_t>(own - queue.begin());
  glance_.first = queue.front().full;
  ReadFirst(lock_.path);
}

void Look::OnPermitsListed(const zookeeper::ListReply& turnstile) {
  if (leases_.error != Error::kNone || turnstile.error != Error::kNone) return End(false);
  const auto leases = protocol::Queue(leases_.children);
  const auto waiting = protocol::Queue(turnstile.children);
  const auto place_in = [this](const std::vector<protocol::ContenderName>& queue) {
    const auto own = std::find_if(queue.begin(), queue.end(), [&](const auto& contender) {
      return contender.full == protocol::BaseOf(own_);
    });
    return static_cast<std::size_t>(own - queue.begin());
  };
  const std::size_t with_lease = place_in(leases);
  const std::size_t in_turnstile = place_in(waiting);
  if (with_lease < leases.size()) {
    glance_.ahead = glance_.holders = with_lease;
  } else if (in_turnstile < waiting.size()) {
    // The first in the turnstile waits with a lease of its own, the last.
    const std::size_t waits_with_lease = in_turnstile > 0 && !leases.empty() ? 1 : 0;
    glance_.holders = leases.size() - waits_with_lease;
    glance_.ahead = glance_.holders + in_turnstile;
  }
  if (glance_.ahead == 0 || leases.empty()) return End(false);
  glance_.first = leases.front().full;
  ReadFirst(lock_.path + "/" + std::string(protocol::kLeases));
}

void Look::ReadFirst(const std::string& queue) {
  store_.Get(queue + "/" + glance_.first, Watch::kNo,
             scope_.Wrap([this](const zookeeper::GetReply& first) { OnFirst(first); }));
}

void Look::OnFirst(const zookeeper::GetReply& reply) {
  if (reply.error == Error::kNone) {
    glance_.first_data = reply.data.substr(0, kMostDataKept);
    if (own_created_ms_) {
      glance_.first_older_by = std::chrono::milliseconds(*own_created_ms_ - reply.stat.created_ms);
    }
  }
  // Gone since, or not for us to read: its name is what is known.
  End(true);
}

void Look::End(bool seen) {
  const auto done = std::exchange(done_, nullptr);
  done(seen ? std::optional(glance_) : std::nullopt);
}

}  // namespace zklock::lock
