#include "process/loop/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace zklock::process {

std::optional<ServiceManager> ServiceManager::FromEnvironment() {
  const char* const named = std::getenv("NOTIFY_SOCKET");
  if (named == nullptr) return std::nullopt;
  const std::string_view name = named;
  sockaddr_un address{};
  // A path, or a name in the abstract namespace if it begins with @. Other kinds, such as vsock,
  // are not supported.
  if (!name.starts_with('/') && !name.starts_with('@')) return std::nullopt;
  if (name.size() < 2 || name.size() >= sizeof address.sun_path) return std::nullopt;
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';
  // An abstract name ends where the address ends; a path ends with a null byte.
  const std::size_t size =
      offsetof(sockaddr_un, sun_path) + name.size() + (name.front() == '/' ? 1 : 0);
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::nullopt;
  return ServiceManager(std::move(socket),
                        std::string(reinterpret_cast<const char*>(&address), size));
}

void ServiceManager::Notify(const std::string& status, Duration start_time) const {
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(start_time);
  const std::string text =
      "STATUS=" + status + "\nEXTEND_TIMEOUT_USEC=" + std::to_string(microseconds.count());
  sockaddr_un address{};
  std::memcpy(&address, address_.data(), address_.size());
  (void)sendto(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address),
               static_cast<socklen_t>(address_.size()));
}

}  // namespace zklock::process
