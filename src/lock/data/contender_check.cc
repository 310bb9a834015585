#include "lock/data/contender_check.h"

#include <memory>
#include <string>
#include <utility>

#include "protocol/lock_path.h"

namespace zklock::lock {
namespace {

using zookeeper::Error;

/// The answers so far to the check and to the reads that follow it.
struct Answers {
  zookeeper::Reply reply;
  std::size_t pending = 0;
  zookeeper::Done<zookeeper::Reply> done;

  void Take(Error error) {
    if (reply.error == Error::kNone) reply.error = error;
    if (--pending == 0) done(reply);
  }
};

}  // namespace

bool IsGone(const ContenderId& contender, const zookeeper::GetReply& read) {
  if (read.error == Error::kNoNode) return true;
  return read.error == Error::kNone && contender.token != 0 &&
         read.stat.created_zxid != contender.token;
}

void CheckContenders(zookeeper::Store& store, const std::vector<ContenderId>& contenders,
                     zookeeper::Done<zookeeper::Reply> done) {
  std::vector<std::string> paths;
  std::vector<ContenderId> to_read;
  paths.reserve(contenders.size());
  for (const ContenderId& one : contenders) {
    paths.push_back(one.path);
    if (one.has_reused_name()) to_read.push_back(one);
  }
  if (to_read.empty()) return store.Check(paths, std::move(done));

  const auto answers = std::make_shared<Answers>();
  answers->pending = 1 + to_read.size();
  answers->done = std::move(done);
  store.Check(paths, [answers](const zookeeper::Reply& reply) {
    answers->reply.sent = reply.sent;
    answers->Take(reply.error);
  });
  // Sent in the same write. The servers answer a session's requests in order, so each read shows a
  // state that includes the commit.
  for (const ContenderId& one : to_read) {
    store.Get(one.path, zookeeper::Watch::kNo, [answers, one](const zookeeper::GetReply& reply) {
      answers->Take(IsGone(one, reply) ? Error::kNoNode : reply.error);
    });
  }
}

}  // namespace zklock::lock
