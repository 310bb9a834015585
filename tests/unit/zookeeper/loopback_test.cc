#include "zookeeper/loopback.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>

#include "base/unique_fd.h"

namespace zklock::zookeeper {
namespace {

UniqueFd ConnectTo(const LoopbackListener& listener) {
  const std::string& address = listener.address();
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(static_cast<in_port_t>(std::stoi(address.substr(address.find(':') + 1))));
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  return socket;
}

TEST_CASE("A connection that a stranger makes to the loopback port is closed, not used") {
  const LoopbackListener listener;
  const UniqueFd stranger = ConnectTo(listener);
  const UniqueFd own = ConnectTo(listener);
  const UniqueFd late = ConnectTo(listener);
  const UniqueFd accepted = listener.Accept(own.get());
  REQUIRE(accepted);
  CHECK(send(own.get(), "x", 1, 0) == 1);
  char received = 0;
  CHECK(recv(accepted.get(), &received, 1, 0) == 1);
  CHECK(recv(stranger.get(), &received, 1, 0) == 0);
  CHECK_FALSE(listener.Accept(own.get()));
}

}  // namespace
}  // namespace zklock::zookeeper
