#pragma once

#include <string>
#include <vector>

namespace zklock::zookeeper {

/// One credential: what the servers are told ahead of everything else on each connection.
struct AuthInfo {
  std::string scheme;      ///< "digest"
  std::string credential;  ///< "user:password"; secret
  friend bool operator==(const AuthInfo&, const AuthInfo&) = default;
};

/// Who may do what with the znodes that we create.
enum class Acl {
  kOpen,     ///< everyone everything
  kCreator,  ///< who the credentials say we are everything, everyone READ
};

/// As whom we come, and what we leave to others.
struct Access {
  std::vector<AuthInfo> credentials;
  Acl acl = Acl::kOpen;  ///< kCreator needs credentials
};

}  // namespace zklock::zookeeper
