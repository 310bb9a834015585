#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace zklock::process {

/// The service manager that started this process as (part of) a service, reached through the
/// protocol of sd_notify(3). $NOTIFY_SOCKET stays in the environment: the command has to report
/// when it is ready.
class ServiceManager {
 public:
  /// None if the environment names no usable socket.
  [[nodiscard]] static std::optional<ServiceManager> FromEnvironment();

  /// Sets the service's status text, one line, and asks for this much more time before its start is
  /// considered failed. Never blocks; a message that the manager has no room for is lost.
  void Notify(const std::string& status, Duration start_time) const;

 private:
  ServiceManager(UniqueFd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  UniqueFd socket_;
  std::string address_;  // the used part of a sockaddr_un
};

}  // namespace zklock::process
