#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>
#include <string>

#include "base/unique_fd.h"

namespace zklock::test {

/// A loopback port reserved for a program that binds it with SO_REUSEADDR, as servers do.
class KeptPort {
 public:
  KeptPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no port");
    }
    number_ = std::to_string(ntohs(address.sin_port));
  }
  [[nodiscard]] const std::string& number() const { return number_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + number_; }

 private:
  UniqueFd socket_;
  std::string number_;
};

}  // namespace zklock::test
