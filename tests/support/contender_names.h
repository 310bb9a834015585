#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace zklock::test {

/// Any UUID, for the names of contenders.
inline const std::string kUuid = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
inline const std::string kHexUuid = "6fa459eaee8a4ca4894edb77e160355e";  ///< as kazoo writes it

// The names of contenders of zklock, Curator and kazoo, without the servers' number.
inline const std::string kZklockLock = "h-" + kUuid + "-lock-";
inline const std::string kCuratorLock = "_c_" + kUuid + "-lock-";
inline const std::string kCuratorReader = "_c_" + kUuid + "-__READ__";
inline const std::string kCuratorWriter = "_c_" + kUuid + "-__WRIT__";
inline const std::string kCuratorPermit = "_c_" + kUuid + "-lease-";
inline const std::string kKazooLock = kHexUuid + "__lock__";
inline const std::string kKazooReader = kHexUuid + "__rlock__";

/// Returns the name that the servers give to a sequential znode with this number.
inline std::string Numbered(const std::string& prefix, std::int64_t number) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%010lld", static_cast<long long>(number));
  return prefix + digits;
}

}  // namespace zklock::test
