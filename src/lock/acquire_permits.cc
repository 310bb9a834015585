#include "lock/acquire.h"

#include <memory>
#include <string>

#include "protocol/contender_name.h"
#include "protocol/queue.h"

// How many permits those before ours in the turnstile leave to a `try`.

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::Watch;

void Acquire::CountPermits(std::size_t ahead) {
  // They only go. As many in the list after the leases as in the one before are the same ones, and
  // none of them has come to its permit in between: then the three lists are of one moment.
  const auto leases = std::make_shared<std::size_t>(0);
  store_.List(request_.lock.path + "/" + std::string(protocol::kLeases), Watch::kNo,
              InStep([leases](const zookeeper::ListReply& reply) {
                if (reply.error == Error::kNone) {
                  *leases = protocol::Contenders(reply.children).size();
                }
              }));
  store_.List(request_.QueuePath(), Watch::kNo,
              InStep([this, ahead, leases](const zookeeper::ListReply& reply) {
                if (reply.error != Error::kNone) return;
                const protocol::Contenders contenders(reply.children);
                const std::size_t still_ahead = protocol::RankOf(contenders, own_name()).ahead;
                // With the last of them our predecessor has gone, which is told of by its watch.
                if (still_ahead == 0) return;
                if (still_ahead != ahead) return CountPermits(still_ahead);
                // The first of them may have made its lease. If it has not, one more permit goes
                // than is counted here; that still leaves one to each of them, so that they go at
                // once, and the leases say then that there is none for ours.
                if (*leases + still_ahead - 1 >= *request_.permit_limit) {
                  Finish(Busy{Busy::Why::kTaken, "", ""});
                }
              }));
}

}  // namespace zklock::lock
