#include "lock/acquire/permit_number.h"

#include <algorithm>
#include <string>
#include <utility>

#include "protocol/contender_name.h"
#include "protocol/semaphore.h"

namespace zklock::lock {

PermitNumber::PermitNumber(zookeeper::Store& store, const AcquireRequest& request)
    : store_(store), request_(request) {}

void PermitNumber::Take(const zookeeper::GetReply& reply) {
  Forget();
  if (reply.error != zookeeper::Error::kNone) return;
  data_ = {.number = protocol::ParsePermitLimit(reply.data), .version = reply.stat.version};
}

std::optional<std::size_t> PermitNumber::written() const {
  return data_ ? data_->number : std::nullopt;
}

PermitNumber::Agreement PermitNumber::Compare(const protocol::Contenders& permits,
                                              std::string_view own_name) const {
  if (!data_) return Agreement::kUnread;
  if (data_->number == request_.permits) return Agreement::kAgreed;
  if (data_->number && protocol::RunsOf(permits).size() > 1) return Agreement::kOtherNumber;
  const auto own = protocol::ViewContenderName(own_name);
  const bool is_used_by_zklock = std::any_of(permits.begin(), permits.end(), [&](const auto& one) {
    return one.run() != own->run() && one.program() == protocol::Program::kZklock;
  });
  return is_used_by_zklock ? Agreement::kUnknownNumber : Agreement::kOpen;
}

void PermitNumber::Write(zookeeper::Done<zookeeper::Reply> done) {
  const std::int32_t version = data_->version;
  Forget();
  store_.Set(request_.QueuePath(), std::to_string(*request_.permits), version, std::move(done));
}

std::optional<Unusable> FindOtherNumber(const zookeeper::GetReply& reply, std::size_t holders,
                                        std::size_t own_number) {
  if (reply.error != zookeeper::Error::kNone || holders == 0) return std::nullopt;
  const auto number = protocol::ParsePermitLimit(reply.data);
  if (!number || *number == own_number) return std::nullopt;
  return Unusable{.why = Unusable::Why::kOtherPermits, .permits = *number};
}

}  // namespace zklock::lock
