#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace zklock::process {

/// What identifies this process to people and to other hosts.
struct Identity {
  std::string host;  ///< as from gethostname(2), unabridged
  std::string user;  ///< the effective user's name, or its number if no name is known
  pid_t pid = 0;
  std::string boot_id;           ///< from the kernel, new with each boot; empty without /proc
  std::uint64_t start_time = 0;  ///< clock ticks since boot; 0 without /proc
  /// The PID namespace's number: containers may share host name and boot id. 0 without /proc.
  std::uint64_t pid_namespace = 0;
};

/// Never asks a name service, which might block: the user's name is from /etc/passwd, else from
/// $USER or $LOGNAME, unless that name has another uid in /etc/passwd.
[[nodiscard]] Identity ThisProcess();

/// A random UUID (version 4), lower case: "6fa459ea-ee8a-4ca4-894e-db77e160355e". Throws
/// std::system_error if the kernel gives no random bytes.
[[nodiscard]] std::string MakeUuid();

}  // namespace zklock::process
