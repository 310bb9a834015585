#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace zklock::process {

/// Identifies this process to people and to other hosts.
struct Identity {
  std::string host;  ///< from gethostname(2), in full
  std::string user;  ///< the effective user's name, or the uid if no name is known
  pid_t pid = 0;
  std::string boot_id;           ///< the kernel's, different for each boot; empty without /proc
  std::uint64_t start_time = 0;  ///< clock ticks since boot; 0 without /proc
  /// The inode number of the PID namespace, since containers may share the host name and boot ID; 0
  /// without /proc.
  std::uint64_t pid_namespace = 0;
};

/// Returns this process's identity. Never queries a name service, which might block: the user's
/// name is from /etc/passwd or, failing that, $USER or $LOGNAME unless it has another uid there.
[[nodiscard]] Identity ThisProcess();

/// Returns a random UUID (version 4) in lower case: "6fa459ea-ee8a-4ca4-894e-db77e160355e". Throws
/// std::system_error if the kernel provides no random bytes.
[[nodiscard]] std::string MakeUuid();

}  // namespace zklock::process
