#include "lock/operations/calls.h"

#include <algorithm>
#include <optional>

#include "lock/data/contender_check.h"

namespace zklock::lock {

using zookeeper::Error;
using zookeeper::GetReply;
using zookeeper::ListReply;
using zookeeper::Reply;
using zookeeper::Watch;

void Calls::AwaitConnection() {
  serve_(*this, [this] { return is_connected_ || failure(); });
  if (failure()) throw OperationFailed(*failure());
  began_ = attempt();
}

void Calls::RequireConnection() const {
  if (failure()) throw OperationFailed(*failure());
  if (attempt() != began_) throw ConnectionLost{};
}

void Calls::Await(const std::function<bool()>& has_answer) {
  serve_(*this, [&] { return has_answer() || attempt() != began_ || failure(); });
  // An answer counts even if the connection was lost after it arrived.
  if (!has_answer()) RequireConnection();
}

// The answer can be stored on the stack: OnReply() drops one that arrives after its wait has ended.

template <typename R, typename F>
R Calls::Ask(F send) {
  RequireConnection();
  std::optional<R> answer;
  send(OnReply([&answer](const R& reply) { answer = reply; }));
  Await([&answer] { return answer.has_value(); });
  return *answer;
}

template <typename R, typename F>
std::vector<R> Calls::AskAll(const std::vector<std::string>& paths, F send) {
  RequireConnection();
  std::vector<R> answers;
  for (const std::string& path : paths) {
    send(path, OnReply([&answers](const R& reply) { answers.push_back(reply); }));
  }
  Await([&] { return answers.size() == paths.size(); });
  return answers;
}

GetReply Calls::Get(const std::string& path, Watch watch) {
  if (watch == Watch::kYes) {
    watched_ = path;
    has_changed_ = false;
  }
  return Ask<GetReply>([&](auto done) { store().Get(path, watch, std::move(done)); });
}

ListReply Calls::List(const std::string& path) {
  return Ask<ListReply>([&](auto done) { store().List(path, Watch::kNo, std::move(done)); });
}

std::vector<GetReply> Calls::GetAll(const std::vector<std::string>& paths) {
  return AskAll<GetReply>(paths, [&](const std::string& path, auto done) {
    store().Get(path, Watch::kNo, std::move(done));
  });
}

std::vector<ListReply> Calls::ListAll(const std::vector<std::string>& paths) {
  return AskAll<ListReply>(paths, [&](const std::string& path, auto done) {
    store().List(path, Watch::kNo, std::move(done));
  });
}

void Calls::Complete(std::span<LockChildren> children) {
  RequireConnection();
  const LockChildren::Requests reads{
      .list = [this](const std::string& path,
                     auto take) { store().List(path, Watch::kNo, OnReply(std::move(take))); },
      .get = [this](const std::string& path,
                    auto take) { store().Get(path, Watch::kNo, OnReply(std::move(take))); }};
  for (LockChildren& one : children) one.SendAll(reads, [] {});
  Await([&children] {
    return std::all_of(children.begin(), children.end(),
                       [](const LockChildren& one) { return one.IsComplete(); });
  });
}

Error Calls::Set(const std::string& path, const std::string& data, std::int32_t version) {
  return Ask<zookeeper::SetReply>(
             [&](auto done) { store().Set(path, data, version, std::move(done)); })
      .error;
}

Error Calls::Delete(const std::string& path, std::int32_t version) {
  return Ask<Reply>([&](auto done) { store().Delete(path, version, std::move(done)); }).error;
}

Error Calls::WriteAndDelete(const std::vector<zookeeper::DataWrite>& writes,
                            const std::vector<std::string>& gone, std::int32_t version) {
  if (writes.empty() && gone.size() == 1) return Delete(gone.front(), version);
  return Ask<Reply>(
             [&](auto done) { store().WriteAndDelete(writes, gone, version, std::move(done)); })
      .error;
}

Error Calls::MakePersistent(const std::vector<zookeeper::Conversion>& conversions,
                            const std::vector<std::string>& checked,
                            const std::vector<std::string>& deleted) {
  return Ask<Reply>([&](auto done) {
           store().MakePersistent(conversions, checked, deleted, std::move(done));
         })
      .error;
}

Error Calls::Check(const std::vector<ContenderId>& contenders) {
  return Ask<Reply>([&](auto done) { CheckContenders(store(), contenders, std::move(done)); })
      .error;
}

zookeeper::AclReply Calls::GetAcl(const std::string& path) {
  return Ask<zookeeper::AclReply>([&](auto done) { store().GetAcl(path, std::move(done)); });
}

Error Calls::CheckCreate(const std::string& path, const std::string& data, bool and_delete) {
  return Ask<Reply>(
             [&](auto done) { store().CheckCreate(path, data, and_delete, std::move(done)); })
      .error;
}

zookeeper::SetReply Calls::Stamp(const std::string& path) {
  return Ask<zookeeper::SetReply>([&](auto done) { store().Stamp(path, std::move(done)); });
}

void Calls::Sync(const std::string& path) {
  RequireConnection();
  store().Sync(path, OnReply([](const Reply&) {}));
}

bool Calls::AwaitChange() {
  RequireConnection();  // otherwise OnDisconnected() would not end it
  DisarmAnswerDeadline();
  look_again_ = After(clock().Now(), store().lease().timeout() / 4);
  Await([this] { return has_changed_ || clock().Now() >= look_again_; });
  ArmAnswerDeadline();
  look_again_ = kNever;
  return has_changed_;
}

EventSource::Interest Calls::GetInterest() {
  Interest interest = ServerOperation::GetInterest();
  if (!IsOver()) interest.wake = std::min(interest.wake, look_again_);
  return interest;
}

void Calls::OnDisconnected() {
  is_connected_ = false;
  look_again_ = kNever;
  ServerOperation::OnDisconnected();
}

void Calls::OnWatch(const std::string& path, zookeeper::Change /*change*/) {
  if (path == watched_) has_changed_ = true;
}

}  // namespace zklock::lock
