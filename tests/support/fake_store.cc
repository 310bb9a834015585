#include "support/fake_store.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "protocol/lock_path.h"

namespace zklock::test {

using protocol::BaseOf;
using protocol::ParentOf;
using zookeeper::Change;
using zookeeper::CreateReply;
using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::NodeKind;
using zookeeper::NodeStat;
using zookeeper::Reply;
using zookeeper::SetReply;
using zookeeper::Watch;

namespace {

NodeStat StatOf(const FakeServers::Node& node) {
  return {.created_zxid = node.czxid,
          .created_ms = node.created_ms,
          .modified_ms = node.modified_ms,
          .ephemeral_owner = node.owner,
          .version = node.version,
          .children_made = node.next_number};
}

}  // namespace

// ---- the servers ----------------------------------------------------------------------------

std::string FakeServers::Put(const std::string& path, std::int64_t owner, bool sequential,
                             const std::string& data) {
  std::string full = path;
  Node& parent = nodes.at(ParentOf(path));
  if (sequential) full += fmt::format("{:010d}", parent.next_number++);
  nodes[full] = {
      .data = data, .owner = owner, .czxid = ++zxid, .created_ms = now_ms, .modified_ms = now_ms};
  Fire(full, Change::kCreated);
  Fire(ParentOf(full), Change::kChildren);
  return full;
}

void FakeServers::Remove(const std::string& path) {
  if (nodes.erase(path) == 0) return;
  ++zxid;
  Fire(path, Change::kDeleted);
  Fire(ParentOf(path), Change::kChildren);
}

void FakeServers::Write(const std::string& path, const std::string& data) {
  Node& node = nodes.at(path);
  node.data = data;
  node.modified_ms = now_ms;
  ++node.version;
  ++zxid;
  Fire(path, Change::kData);
}

void FakeServers::EndSession(std::int64_t session) {
  std::vector<std::string> gone;
  for (const auto& [path, node] : nodes) {
    if (node.owner == session && session != 0) gone.push_back(path);
  }
  for (const std::string& path : gone) Remove(path);
}

std::vector<std::string> FakeServers::Children(const std::string& path) const {
  std::vector<std::string> children;
  for (const auto& [child, node] : nodes) {
    if (child != "/" && ParentOf(child) == path) children.emplace_back(BaseOf(child));
  }
  return children;
}

bool FakeServers::IsFull(const std::string& path) const {
  for (std::string above = path; above != "/"; above = ParentOf(above)) {
    const auto node = nodes.find(above);
    if (node != nodes.end() && node->second.full) return true;
  }
  return false;
}

void FakeServers::Fire(const std::string& path, Change change) {
  const auto [begin, end] = watchers_.equal_range(path);
  std::vector<FakeStore*> told;
  for (auto it = begin; it != end;) {
    const bool of_children = change == Change::kChildren;
    if (change == Change::kDeleted || it->second.children == of_children) {
      told.push_back(it->second.store);
      it = watchers_.erase(it);
    } else {
      ++it;
    }
  }
  for (FakeStore* store : told) store->events_.emplace_back(path, change);
}

// ---- one client -----------------------------------------------------------------------------

FakeStore::FakeStore(FakeServers& servers, FakeClock& clock, Duration timeout)
    : servers_(servers), clock_(clock), timeout_(timeout), lease_(timeout) {}

FakeStore::~FakeStore() {
  LoseWatches();
  if (std::uncaught_exceptions() > 0) return;
  for (const std::string& unused : {faults_.Unused(), refusals_.Unused(), before_.Unused()}) {
    CAPTURE(unused);
    CHECK(unused.empty());
  }
}

void FakeStore::DropPlans() {
  faults_.Clear();
  refusals_.Clear();
  before_.Clear();
}

void FakeStore::LoseWatches() {
  std::erase_if(servers_.watchers_, [this](const auto& one) { return one.second.store == this; });
}

std::vector<std::string> FakeStore::SentSince(std::size_t begin) const {
  return {log_.begin() + static_cast<std::ptrdiff_t>(begin), log_.end()};
}

std::size_t FakeStore::CountSent(const std::string& beginning) const {
  return static_cast<std::size_t>(std::count_if(
      log_.begin(), log_.end(), [&](const auto& line) { return line.starts_with(beginning); }));
}

void FakeStore::Connect() {
  if (connected_ || awaits_renewal_) return;
  given_up_ = false;
  if (std::exchange(expired_, false)) {
    session_ = 0;
    awaits_renewal_ = true;
    if (listener_ != nullptr) listener_->OnExpired();
    return;
  }
  const bool fresh = session_ == 0;
  if (fresh) {
    session_ = servers_.next_session++;
    lease_ = protocol::Lease(timeout_);
  }
  connected_ = true;
  lease_.ConnectAccepted(clock_.Now(), timeout_);
  if (listener_ != nullptr) listener_->OnConnected(fresh);
}

void FakeStore::Renew() { awaits_renewal_ = false; }

void FakeStore::Disconnect() { LoseConnection(); }

void FakeStore::Expire() {
  servers_.EndSession(session_);
  expired_ = true;
  LoseConnection();
}

void FakeStore::LoseConnection() {
  connected_ = false;
  LoseWatches();
  events_.clear();
  std::deque<Request> lost;
  lost.swap(requests_);
  for (const Request& request : lost) request.answer(Error::kConnectionLoss, request.sent);
  if (listener_ != nullptr) listener_->OnDisconnected();
}

bool FakeStore::Step() {
  if (!events_.empty()) {
    const auto [path, change] = events_.front();
    events_.pop_front();
    if (listener_ != nullptr) listener_->OnWatch(path, change);
    return true;
  }
  if (requests_.empty()) return false;
  if (!connected_) {
    // A request sent without a connection is answered, but never executed.
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    request.answer(Error::kConnectionLoss, request.sent);
    return true;
  }
  const std::size_t number = requests_.front().number;
  const std::string line = log_[number];
  if (const auto hook = before_.Take(number, line)) {
    (*hook)();
    if (requests_.empty()) return true;   // the hook ended the connection
    if (!events_.empty()) return Step();  // servers send events before the answer to a request
  }
  bool closes = false;
  if (const auto fault = faults_.Take(number, line)) {
    closes = *fault == Fault::kAnsweredAndClosed;
    if (!closes) return SufferFault(*fault);
  }
  const Request request = std::move(requests_.front());
  requests_.pop_front();
  const auto refusal = refusals_.Take(number, line);
  const Error error = refusal ? *refusal : request.act();
  if (error == Error::kNone && request.commits) {
    lease_.Committed(request.sent, clock_.Now());
  } else {
    lease_.Answered(request.sent, clock_.Now());
  }
  if (closes) connected_ = false;  // as in Session: the loss is known when the answer is delivered
  request.answer(error, request.sent);
  if (closes || (error == Error::kUnimplemented && connected_)) LoseConnection();
  return true;
}

bool FakeStore::SufferFault(Fault fault) {
  const bool executed = fault == Fault::kReplyLost || fault == Fault::kExpiredReplyLost;
  if (executed) requests_.front().act();
  if (fault == Fault::kExpiredNotDone || fault == Fault::kExpiredReplyLost) {
    Expire();
  } else {
    LoseConnection();
  }
  return true;
}

void FakeStore::Run() {
  for (int steps = 0; steps < 100000; ++steps) {
    if (given_up_ && connected_) LoseConnection();
    if (!connected_) Connect();
    if (!Step() && (connected_ || awaits_renewal_)) return;
  }
  throw std::runtime_error("the store never becomes idle");
}

template <typename R>
void FakeStore::Send(const std::string& what, bool commits, zookeeper::Done<R> done,
                     std::function<Error(R&)> act) {
  const auto reply = std::make_shared<R>();
  requests_.push_back({.number = log_.size(),
                       .sent = clock_.Now(),
                       .commits = commits,
                       .act = [reply, act = std::move(act)] { return act(*reply); },
                       .answer =
                           [reply, done = std::move(done)](Error error, TimePoint sent) {
                             if (error == Error::kConnectionLoss) *reply = R{};
                             reply->error = error;
                             reply->sent = sent;
                             done(*reply);
                           }});
  log_.push_back(what);
}

/// Returns the error that refuses the creation of a child of `parent`, or kNone.
Error FakeStore::RefusalToCreate(const std::string& parent) const {
  const auto node = servers_.nodes.find(parent);
  if (node == servers_.nodes.end()) return Error::kNoNode;
  if (!node->second.writable) return Error::kNoAuth;
  if (node->second.owner != 0) return Error::kNoChildrenForEphemerals;
  return servers_.IsFull(parent) ? Error::kQuotaExceeded : Error::kNone;
}

void FakeStore::Create(const std::string& path, const std::string& data, NodeKind kind,
                       zookeeper::Done<CreateReply> done) {
  Send<CreateReply>("create " + path, true, std::move(done), [=, this](CreateReply& reply) {
    const bool is_container = kind == NodeKind::kContainer || kind == NodeKind::kSharedContainer;
    const bool is_known = is_container ? servers_.knows_containers : servers_.knows_create2;
    if (!is_known) return Error::kUnimplemented;
    const Error refusal = RefusalToCreate(std::string(ParentOf(path)));
    if (refusal != Error::kNone) return refusal;
    const bool sequential = kind == NodeKind::kEphemeralSequential;
    if (!sequential && servers_.Has(path)) return Error::kNodeExists;
    const bool ephemeral = sequential || kind == NodeKind::kEphemeral;
    reply.path = servers_.Put(path, ephemeral ? session_ : 0, sequential, data);
    servers_.nodes.at(reply.path).is_container = is_container;
    reply.stat = StatOf(servers_.nodes.at(reply.path));
    return Error::kNone;
  });
}

bool FakeStore::MayDelete(const std::string& path) const {
  return may_delete || ParentOf(path) == may_delete_below;
}

void FakeStore::CreateAll(const std::vector<zookeeper::NewContender>& contenders,
                          const std::string& scratch,
                          zookeeper::Done<zookeeper::CreateAllReply> done) {
  std::string text = "create all";
  for (const auto& one : contenders) text += " " + one.parent;
  Send<zookeeper::CreateAllReply>(
      text, true, std::move(done), [=, this](zookeeper::CreateAllReply& reply) {
        for (const auto& one : contenders) {
          reply.may_not_delete = !scratch.empty() && !MayDelete(one.parent + "/" + scratch);
          const Error refusal = reply.may_not_delete ? Error::kNoAuth : RefusalToCreate(one.parent);
          if (refusal != Error::kNone) return refusal;
          ++reply.failed;
        }
        const std::int64_t zxid = servers_.zxid + 1;
        for (const auto& one : contenders) {
          reply.paths.push_back(
              servers_.Put(one.parent + "/" + one.prefix, session_, true, one.data));
          servers_.nodes.at(reply.paths.back()).czxid = zxid;
        }
        if (!scratch.empty()) reply.stat = StatOf(servers_.nodes.at(reply.paths.back()));
        return Error::kNone;
      });
}

void FakeStore::Get(const std::string& path, Watch watch, zookeeper::Done<GetReply> done) {
  Send<GetReply>("get " + path, false, std::move(done), [=, this](GetReply& reply) {
    const auto node = servers_.nodes.find(path);
    if (node == servers_.nodes.end()) return Error::kNoNode;
    if (!node->second.readable) return Error::kNoAuth;
    if (watch == Watch::kYes) servers_.watchers_.insert({path, {this, false}});
    reply.data = node->second.data;
    reply.stat = StatOf(node->second);
    return Error::kNone;
  });
}

void FakeStore::List(const std::string& path, Watch watch, zookeeper::Done<ListReply> done) {
  Send<ListReply>("list " + path, false, std::move(done), [=, this](ListReply& reply) {
    const auto node = servers_.nodes.find(path);
    if (node == servers_.nodes.end()) return Error::kNoNode;
    if (!node->second.readable) return Error::kNoAuth;
    if (watch == Watch::kYes) servers_.watchers_.insert({path, {this, true}});
    reply.children = servers_.Children(path);
    return Error::kNone;
  });
}

void FakeStore::Exists(const std::string& path, Watch watch, zookeeper::Done<Reply> done) {
  Send<Reply>("exists " + path, false, std::move(done), [=, this](Reply&) {
    if (watch == Watch::kYes) servers_.watchers_.insert({path, {this, false}});
    return servers_.Has(path) ? Error::kNone : Error::kNoNode;
  });
}

void FakeStore::Delete(const std::string& path, std::int32_t version, zookeeper::Done<Reply> done) {
  Send<Reply>("delete " + path, false, std::move(done), [=, this](Reply&) {
    const auto node = servers_.nodes.find(path);
    if (node == servers_.nodes.end()) return Error::kNoNode;
    if (!MayDelete(path)) return Error::kNoAuth;
    if (version != zookeeper::kAnyVersion && node->second.version != version) {
      return Error::kBadVersion;
    }
    if (!servers_.Children(path).empty()) return Error::kNotEmpty;
    servers_.Remove(path);
    return Error::kNone;
  });
}

void FakeStore::Set(const std::string& path, const std::string& data, std::int32_t version,
                    zookeeper::Done<SetReply> done) {
  Send<SetReply>("set " + path, true, std::move(done), [=, this](SetReply& reply) {
    const auto node = servers_.nodes.find(path);
    if (node == servers_.nodes.end()) return Error::kNoNode;
    if (!node->second.writable) return Error::kNoAuth;
    if (version != zookeeper::kAnyVersion && node->second.version != version) {
      return Error::kBadVersion;
    }
    servers_.Write(path, data);
    reply.stat = StatOf(node->second);
    return Error::kNone;
  });
}

/// Returns the first error that refuses one of `writes`, or kNone.
Error FakeStore::Refusal(const std::vector<zookeeper::DataWrite>& writes) const {
  for (const auto& one : writes) {
    const auto node = servers_.nodes.find(one.path);
    if (node == servers_.nodes.end()) return Error::kNoNode;
    if (!node->second.writable) return Error::kNoAuth;
    if (!servers_.HasVersion(one.path, one.version)) return Error::kBadVersion;
  }
  return Error::kNone;
}

void FakeStore::WriteAndDelete(const std::vector<zookeeper::DataWrite>& writes,
                               const std::vector<std::string>& gone, std::int32_t gone_version,
                               zookeeper::Done<Reply> done) {
  std::string text;
  for (const auto& one : writes) text += (text.empty() ? "write " : ", write ") + one.path;
  if (!gone.empty()) text += text.empty() ? "delete" : ", delete";
  for (const std::string& path : gone) text += " " + path;
  Send<Reply>(text, false, std::move(done), [=, this](Reply&) {
    if (const Error error = Refusal(writes); error != Error::kNone) return error;
    for (const std::string& path : gone) {
      if (!servers_.Has(path)) return Error::kNoNode;
      if (!MayDelete(path)) return Error::kNoAuth;
      const bool is_first = &path == &gone.front();
      if (is_first && !servers_.HasVersion(path, gone_version)) return Error::kBadVersion;
      if (!servers_.Children(path).empty()) return Error::kNotEmpty;
    }
    for (const auto& one : writes) servers_.Write(one.path, one.data);
    for (const std::string& path : gone) servers_.Remove(path);
    return Error::kNone;
  });
}

void FakeStore::MakePersistent(const std::vector<zookeeper::Conversion>& conversions,
                               const std::vector<std::string>& checked,
                               const std::vector<std::string>& deleted,
                               zookeeper::Done<Reply> done) {
  std::string text = "convert";
  for (const auto& one : conversions) text += " " + one.path;
  for (const std::string& path : checked) text += " " + path;
  for (const std::string& path : deleted) text += " without " + path;
  Send<Reply>(text, true, std::move(done), [=, this](Reply&) {
    for (const std::string& path : deleted) {
      if (!servers_.Has(path)) return Error::kNoNode;
      if (!MayDelete(path)) return Error::kNoAuth;
    }
    for (const std::string& path : checked) {
      if (!servers_.Has(path)) return Error::kNoNode;
    }
    for (const auto& one : conversions) {
      if (!servers_.Has(one.path)) return Error::kNoNode;
      if (!MayDelete(one.path)) return Error::kNoAuth;
      if (!servers_.HasVersion(one.path, one.version)) return Error::kBadVersion;
      if (!servers_.nodes.at(ParentOf(one.path)).writable) return Error::kNoAuth;
    }
    const std::int64_t zxid = servers_.zxid + 1;
    for (const auto& one : conversions) {
      servers_.Remove(one.path);
      servers_.Put(one.path, 0, false, one.data);
      servers_.nodes.at(one.path).version = one.version + 1;
      servers_.nodes.at(one.path).czxid = zxid;
    }
    for (const std::string& path : deleted) servers_.Remove(path);
    return Error::kNone;
  });
}

void FakeStore::Sync(const std::string& path, zookeeper::Done<Reply> done) {
  Send<Reply>("sync " + path, false, std::move(done), [](Reply&) { return Error::kNone; });
}

void FakeStore::Stamp(const std::string& path, zookeeper::Done<SetReply> done) {
  Send<SetReply>("stamp " + path, true, std::move(done), [=, this](SetReply& reply) {
    const auto parent = servers_.nodes.find(ParentOf(path));
    if (parent == servers_.nodes.end()) return Error::kNoNode;
    if (!parent->second.writable) return Error::kNoAuth;
    servers_.Put(path, session_);
    reply.stat = StatOf(servers_.nodes.at(path));
    servers_.Remove(path);
    return Error::kNone;
  });
}

void FakeStore::GetAcl(const std::string& path, zookeeper::Done<zookeeper::AclReply> done) {
  Send<zookeeper::AclReply>("acl " + path, false, std::move(done),
                            [=, this](zookeeper::AclReply& reply) {
                              const auto node = servers_.nodes.find(path);
                              if (node == servers_.nodes.end()) return Error::kNoNode;
                              const unsigned rights = node->second.writable ? 31 : 1;
                              reply.entries = {{"world", "anyone", rights}};
                              return Error::kNone;
                            });
}

void FakeStore::CheckCreate(const std::string& path, const std::string& /*data*/, bool and_delete,
                            zookeeper::Done<Reply> done) {
  Send<Reply>("check create " + path, false, std::move(done), [=, this](Reply&) {
    const auto parent = servers_.nodes.find(ParentOf(path));
    if (parent == servers_.nodes.end()) return Error::kNoNode;
    if (!parent->second.writable) return Error::kNoAuth;
    if (parent->second.owner != 0) return Error::kNoChildrenForEphemerals;
    if (and_delete && !MayDelete(path)) return Error::kNoAuth;
    return Error::kNodeExists;
  });
}

void FakeStore::Check(const std::vector<std::string>& paths, zookeeper::Done<Reply> done) {
  std::string text = "check";
  for (const std::string& path : paths) text += " " + path;
  Send<Reply>(text, true, std::move(done), [=, this](Reply&) {
    for (const std::string& path : paths) {
      if (!servers_.Has(path)) return Error::kNoNode;
    }
    return Error::kNone;
  });
}

}  // namespace zklock::test
