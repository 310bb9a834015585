// Messages about replies that no working server sends: a proxy substitutes them for the real ones.

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>

#include "cli/messages/provocation.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

std::string FourBytes(std::int32_t number) {
  const auto bits = static_cast<std::uint32_t>(number);
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(bits >> shift & 0xffU);
  return bytes;
}

/// Returns `reply` with another error and body: the length is adjusted, xid and zxid are kept.
std::string With(std::string reply, std::int32_t error, const std::string& body = "") {
  reply = reply.substr(0, 16) + FourBytes(error) + body;
  return reply.replace(0, 4, FourBytes(static_cast<std::int32_t>(reply.size()) - 4));
}

/// A try whose first list request gets this error as its answer.
std::string ListAnswered(std::int32_t error) {
  Proxy proxy(TestServers());
  proxy.EditReplies([error](const std::string& request, std::string reply) {
    return std::optional(request.starts_with("list") ? With(std::move(reply), error)
                                                     : std::move(reply));
  });
  return Said(Run(ZklockAt(proxy.address(), {"try", NewLock("said"), "--", "true"})), Exited(70));
}

/// A waiter that reconnects, finds its contender, but gets the answer that there is no LOCK.
std::string LockGoneButNotContender() {
  auto [lock, holder] = HoldNewLock("said");
  Proxy proxy(TestServers());
  const auto is_back = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([is_back](const std::string& request, std::string reply) {
    const bool lies = *is_back && request.starts_with("list");
    return std::optional(lies ? With(std::move(reply), -101) : std::move(reply));
  });
  Child waiter = StartWaiter({"exclusive", "-z", proxy.address()}, lock);
  *is_back = true;
  proxy.Cut();
  CHECK(waiter.Wait() == Exited(70));
  return waiter.err();
}

std::string NeverListed() {
  Proxy proxy(TestServers());
  proxy.EditReplies([](const std::string& request, std::string reply) {
    return std::optional(request.starts_with("list") ? With(std::move(reply), 0, FourBytes(0))
                                                     : std::move(reply));
  });
  return Said(Run(ZklockAt(proxy.address(), {"exclusive", NewLock("said"), "--", "true"})),
              Exited(70));
}

std::string NeverThere() {
  Proxy proxy(TestServers());
  proxy.EditReplies([](const std::string& request, std::string reply) {
    const bool lies = request.starts_with("create") && request.ends_with("-lock-");
    return std::optional(lies ? With(std::move(reply), -101) : std::move(reply));
  });
  return Said(Run(ZklockAt(proxy.address(), {"exclusive", NewLock("said"), "--", "true"})),
              Exited(70));
}

/// ZooKeeper 3.4 does not know the request that creates a contender.
std::string OldServers() {
  Proxy proxy(TestServers());
  proxy.EditReplies([](const std::string& request, std::string reply) {
    return std::optional(request.starts_with("create") ? With(std::move(reply), -6)
                                                       : std::move(reply));
  });
  return Said(Run(ZklockAt(proxy.address(), {"exclusive", NewLock("said"), "--", "true"})),
              Exited(78));
}

/// Sequence numbers close to their maximum.
std::string NumbersUsedUp() {
  Proxy proxy(TestServers());
  proxy.EditReplies([](const std::string& /*request*/, std::string reply) {
    const std::string number = "-lock-0000000000";
    const std::size_t at = reply.find(number);
    if (at != std::string::npos) reply.replace(at, number.size(), "-lock-2147483647");
    return std::optional(std::move(reply));
  });
  return Said(Run(ZklockAt(proxy.address(), {"exclusive", NewLock("said"), "--", "true"})),
              Exited(78));
}

std::string ShortSessions() {
  Proxy proxy(TestServers());
  proxy.EditReplies([](const std::string& request, std::string reply) {
    if (request == "connect") reply.replace(8, 4, FourBytes(3000));
    return std::optional(std::move(reply));
  });
  return Said(Run(ZklockAt(proxy.address(), {"exclusive", NewLock("said"), "--", "true"})),
              Exited(78));
}

}  // namespace

Provocations AnswerProvocations() {
  return {
      {{"kDefect", Part("kCannot"), Part("kUnexpectedAnswer")}, [] { return ListAnswered(-999); }},
      {{Part("kZnodeExists")}, [] { return ListAnswered(-110); }},
      {{Part("kChildOfEphemeral")}, [] { return ListAnswered(-108); }},
      {{Part("kHasChildren")}, [] { return ListAnswered(-111); }},
      {{Part("kZnodeChanged")}, [] { return ListAnswered(-103); }},
      {{Part("kUnknownRequest")}, [] { return ListAnswered(-6); }},
      {{Part("kNoZnode")}, LockGoneButNotContender},
      {{Part("kNotListed")}, NeverListed},
      {{Part("kVanishes")}, NeverThere},
      {{"kOldServers"}, OldServers},
      {{"kNumbersUsedUp"}, NumbersUsedUp},
      {{"kShortSessions"}, ShortSessions},
  };
}

}  // namespace zklock::test
