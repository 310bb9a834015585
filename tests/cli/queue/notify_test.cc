// The messages to a service manager while zklock waits: the protocol of sd_notify(3).

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "cli/zklock.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

/// The service manager's socket.
class ManagerSocket {
 public:
  /// `name` is a path or, with a leading @, a name in the abstract namespace.
  explicit ManagerSocket(const std::string& name)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
      throw std::runtime_error("bind");
    }
  }
  /// Returns the next message; empty if none arrives within the patience.
  std::string Receive(std::chrono::milliseconds patience = kPatience) const {
    pollfd polled{socket_.get(), POLLIN, 0};
    if (poll(&polled, 1, static_cast<int>(patience.count())) != 1) return "";
    std::string text(4096, '\0');
    const ssize_t size = recv(socket_.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }

 private:
  UniqueFd socket_;
};

/// Returns a waiter in a service whose manager listens at `socket`. The command itself reports that
/// it is ready.
ChildOptions Waiter(const std::string& socket, const Words& words, const std::string& lock) {
  ChildOptions options = Zklock(words);
  for (const std::string& word :
       Words{lock, "--", "python3", "-c",
             "import os, socket; name = os.environ['NOTIFY_SOCKET']\n"
             "one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
             "one.sendto(b'READY=1', name.replace('@', '\\0', 1) if name[0] == '@' else name)"}) {
    options.argv.push_back(word);
  }
  options.also_environment = {"NOTIFY_SOCKET=" + socket};
  return options;
}

void CheckWait(const std::string& name, const Words& words) {
  const ManagerSocket manager(name);
  auto [lock, holder] = HoldNewLock("notify", {"exclusive", "--label", "x"});
  Child waiter = Child::Start(Waiter(name, words, lock));
  // If the look-up took too long, only the next message names the holder.
  std::string first = manager.Receive();
  if (first.find("; held by ") == std::string::npos) first = manager.Receive(2 * kPatience);
  CHECK_THAT(first, Catch::StartsWith("STATUS=waiting for " + lock + ": next in line, ") &&
                        Catch::Contains("; held by sh (pid ") &&
                        Catch::EndsWith("\nEXTEND_TIMEOUT_USEC=120000000"));
  holder.CloseInput();
  // When the command is about to run, the status is cleared and the start timeout is extended.
  CHECK(manager.Receive() == "STATUS=\nEXTEND_TIMEOUT_USEC=120000000");
  CHECK(manager.Receive() == "READY=1");
  CHECK(waiter.Wait() == Exited(0));
  CHECK(manager.Receive(0ms).empty());
}

TEST_CASE("zklock reports its wait to a service manager and the command reports that it is ready") {
  SECTION("by a socket with a path") {
    const TemporaryDirectory directory;
    CheckWait(directory.Path("notify"), {"exclusive"});
  }
  SECTION("by a socket in the abstract namespace") {
    CheckWait("@zklock-test-" + std::to_string(getpid()), {"exclusive"});
  }
  SECTION("even if nothing is shown on standard error") {
    const TemporaryDirectory directory;
    CheckWait(directory.Path("notify"), {"exclusive", "-q"});
  }
}

TEST_CASE("a zklock that does not wait tells the service manager nothing") {
  const TemporaryDirectory directory;
  const ManagerSocket manager(directory.Path("notify"));
  Run(Waiter(directory.Path("notify"), {"exclusive"}, NewLock("notify")), Exited(0));
  CHECK(manager.Receive() == "READY=1");
  CHECK(manager.Receive(0ms).empty());
}

TEST_CASE("a service manager that cannot be reached changes nothing") {
  const TemporaryDirectory directory;
  for (const std::string& name :
       {directory.Path("nothing"), std::string("relative"), std::string("@"), std::string(),
        std::string(200, '/'), std::string("vsock:2:1234")}) {
    CAPTURE(name);
    auto [lock, holder] = HoldNewLock("notify");
    ChildOptions options = HolderOptions({"exclusive", "-v"}, lock);
    options.also_environment = {"NOTIFY_SOCKET=" + name};
    Child waiter = Child::Start(options);
    waiter.ReadErrUntil("waiting for " + lock);
    holder.CloseInput();
    CHECK(waiter.ReadLine() == "held");
    waiter.Write("0\n");
    CHECK(waiter.Wait() == Exited(0));
  }
}

}  // namespace
}  // namespace zklock::test
