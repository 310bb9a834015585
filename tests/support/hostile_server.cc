#include "support/hostile_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <system_error>
#include <utility>

namespace zklock::test {

HostileServer::HostileServer(Script script)
    : script_(std::move(script)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (!listener_ || bind(listener_.get(), plain, size) != 0 || listen(listener_.get(), 512) != 0 ||
      getsockname(listener_.get(), plain, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "a hostile server");
  }
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  // Signals are left to the test's thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  accepting_ = std::thread([this] { Accept(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HostileServer::~HostileServer() {
  shutdown(listener_.get(), SHUT_RDWR);  // accept() fails
  accepting_.join();
  for (const UniqueFd& one : sockets_) shutdown(one.get(), SHUT_RDWR);
  for (std::thread& one : scripts_) one.join();
}

void HostileServer::Accept() {
  for (int number = 0;; ++number) {
    UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;
    const int at_once = 1;  // each Send() is a segment
    setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    scripts_.emplace_back([this, number, socket = connection.get()] {
      script_(socket, number);
      shutdown(socket, SHUT_RDWR);
    });
    sockets_.push_back(std::move(connection));
  }
}

bool HostileServer::Send(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool HostileServer::Receive(int socket) {
  std::array<char, 4096> bytes{};
  return recv(socket, bytes.data(), bytes.size(), 0) > 0;
}

std::string HostileServer::Number(std::int32_t number) {
  const std::uint32_t bits = htonl(static_cast<std::uint32_t>(number));
  return {reinterpret_cast<const char*>(&bits), sizeof bits};
}

std::string HostileServer::Frame(std::string_view body) {
  return Number(static_cast<std::int32_t>(body.size())) + std::string(body);
}

std::string HostileServer::Grant(std::int32_t timeout) {
  // Version, timeout, session, the length of the password, the password, and whether it is
  // read-only (ConnectResponse).
  return Frame(Number(0) + Number(timeout) + Number(1) + Number(2) + Number(16) +
               std::string(16, 'p') + std::string(1, '\0'));
}

}  // namespace zklock::test
