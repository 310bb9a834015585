#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace zklock::process {

/// Who this process is, for other people to read.
struct Identity {
  std::string host;  ///< as gethostname(2) gives it, whole
  std::string user;  ///< the effective user's name; the number where no name is known
  pid_t pid = 0;
  std::string boot_id;           ///< the kernel's, new with each boot; empty without /proc
  std::uint64_t start_time = 0;  ///< clock ticks since boot; 0 without /proc
  /// The pid namespace's number: containers share host name and boot id. 0 without /proc.
  std::uint64_t pid_namespace = 0;
};

/// Never asks a name service, which might block: the user's name is from /etc/passwd, else from
/// $USER or $LOGNAME, unless /etc/passwd knows that name as somebody else's.
[[nodiscard]] Identity ThisProcess();

/// A random UUID (version 4), lower case: "6fa459ea-ee8a-4ca4-894e-db77e160355e". Throws
/// std::system_error when the kernel gives no random bytes.
[[nodiscard]] std::string MakeUuid();

}  // namespace zklock::process
