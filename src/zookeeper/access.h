#pragma once

#include <string>
#include <vector>

namespace zklock::zookeeper {

/// One credential. It is sent on each connection, before any request.
struct AuthInfo {
  std::string scheme;      ///< "digest"
  std::string credential;  ///< "user:password"; secret
  std::string where{};     ///< where it was read, "FILE:2", for messages; may be empty
  friend bool operator==(const AuthInfo&, const AuthInfo&) = default;
};

/// The ACL of znodes that zklock creates.
enum class Acl {
  kOpen,     ///< all permissions for everyone
  kCreator,  ///< all permissions for the identity of the credentials, READ for everyone
};

/// Credentials, and the ACL for znodes that zklock creates.
struct Access {
  std::vector<AuthInfo> credentials;
  Acl acl = Acl::kOpen;  ///< kCreator needs credentials
};

}  // namespace zklock::zookeeper
