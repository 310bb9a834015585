#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// The service manager that started this process as a service or part of one, notified through the
/// protocol of sd_notify(3). $NOTIFY_SOCKET stays in the environment, because the command itself
/// must report when it is ready.
class ServiceManager {
 public:
  /// Returns none if the environment names no usable socket.
  [[nodiscard]] static std::optional<ServiceManager> FromEnvironment();

  /// Sets the service's status text (one line) and requests `start_time` more before the manager
  /// considers the start failed. Never blocks; a message that the manager has no room for is lost.
  void Notify(const std::string& status, Duration start_time) const;

 private:
  ServiceManager(UniqueFd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  UniqueFd socket_;
  std::string address_;  // the used part of a sockaddr_un
};

}  // namespace zklock::process
