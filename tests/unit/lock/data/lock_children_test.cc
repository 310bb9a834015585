#include "lock/data/lock_children.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace zklock::lock {
namespace {

using zookeeper::Error;
using Names = std::vector<std::string>;

/// Keeps the requests, in order, until the test answers them.
struct Requests {
  LockChildren::Requests Functions() {
    return {.list =
                [this](const std::string& path, zookeeper::Done<zookeeper::ListReply> done) {
                  sent.push_back("list " + path);
                  lists.push_back(std::move(done));
                },
            .get =
                [this](const std::string& path, zookeeper::Done<zookeeper::GetReply> done) {
                  sent.push_back("get " + path);
                  gets.push_back(std::move(done));
                }};
  }
  void AnswerList(std::size_t index, const Names& names, Error error = Error::kNone) {
    zookeeper::ListReply reply;
    reply.error = error;
    reply.children = names;
    lists.at(index)(reply);
  }
  void AnswerGet(const std::string& data) {
    zookeeper::GetReply reply;
    reply.data = data;
    gets.at(0)(reply);
  }

  Names sent;
  std::vector<zookeeper::Done<zookeeper::ListReply>> lists;
  std::vector<zookeeper::Done<zookeeper::GetReply>> gets;
};

}  // namespace

TEST_CASE("The children of a mutex are complete without another request") {
  LockChildren children("/l", {"_c_x-lock-0000000000", "leases"});
  CHECK(children.IsComplete());
  CHECK_FALSE(children.semaphore());
  CHECK(children.children().size() == 2);
  int done = 0;
  Requests requests;
  children.SendAll(requests.Functions(), [&] { ++done; });
  CHECK(done == 1);
  CHECK(requests.sent.empty());
}

TEST_CASE("A semaphore's limit, permits and turnstile are read") {
  LockChildren children("/s", {"leases", "locks"});
  CHECK_FALSE(children.IsComplete());
  int done = 0;
  Requests requests;
  children.SendAll(requests.Functions(), [&] { ++done; });
  CHECK(requests.sent == Names{"get /s/leases", "list /s/leases", "list /s/locks"});
  requests.AnswerGet("2");
  requests.AnswerList(0, {"_c_x-lease-0000000000"});
  CHECK(done == 0);
  requests.AnswerList(1, {}, Error::kNoAuth);
  CHECK(done == 1);
  REQUIRE(children.IsComplete());
  REQUIRE(children.semaphore());
  CHECK(children.semaphore()->permit_limit == 2);
  CHECK(children.semaphore()->permits == protocol::Children{"_c_x-lease-0000000000"});
  CHECK(children.semaphore()->turnstile.empty());
  CHECK(children.permits_error() == Error::kNone);
  CHECK(children.turnstile_error() == Error::kNoAuth);
}

TEST_CASE("A lock that is called leases does not make its parent a semaphore") {
  LockChildren children("/s", {"leases"});
  Requests requests;
  children.SendAll(requests.Functions(), [] {});
  requests.AnswerGet("");
  requests.AnswerList(0, {"_c_x-lock-0000000000"});
  requests.AnswerList(1, {}, Error::kNoNode);
  CHECK(children.IsComplete());
  CHECK_FALSE(children.semaphore());
}

TEST_CASE("The requests can be sent one by one, and answered at once from a cache") {
  LockChildren children("/s", {"leases", "locks"});
  Requests requests;
  const LockChildren::Requests at_once{
      .list = [](const auto&, const auto& done) { done(zookeeper::ListReply{}); },
      .get =
          [](const auto&, const auto& done) {
            zookeeper::GetReply reply;
            reply.data = "3";
            done(reply);
          }};
  int done = 0;
  const auto count = [&] { ++done; };
  CHECK(children.SendNext(at_once, count));
  CHECK_FALSE(children.IsComplete());
  CHECK(children.SendNext(requests.Functions(), count));
  CHECK(children.SendNext(at_once, count));
  CHECK_FALSE(children.SendNext(at_once, count));
  CHECK(done == 0);
  requests.AnswerList(0, {});
  CHECK(done == 1);
  CHECK(children.semaphore()->permit_limit == 3);
}

TEST_CASE("Only the two queues of a known semaphore are listed") {
  LockChildren children = LockChildren::OfSemaphore("/s");
  Requests requests;
  children.SendAll(requests.Functions(), [] {});
  CHECK(requests.sent == Names{"list /s/leases", "list /s/locks"});
  requests.AnswerList(0, {});
  requests.AnswerList(1, {"_c_x-lock-0000000000"});
  CHECK(children.semaphore()->turnstile.size() == 1);
}

}  // namespace zklock::lock
