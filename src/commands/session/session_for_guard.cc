#include "commands/session/session_for_guard.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "process/transport/transport_helper.h"
#include "zookeeper/orphaned_session.h"

namespace zklock::commands {

void SessionForGuard::Set(const zookeeper::Session& session) {
  const zookeeper::Credentials& credentials = *session.credentials();
  std::string addresses;
  for (const zookeeper::Endpoint& endpoint : session.endpoints()) {
    const std::string line = endpoint.address + " " + endpoint.name + "\n";
    if (addresses.size() + line.size() < page_->addresses.size()) addresses += line;
  }
  Clear();
  page_->session_id = credentials.session_id;
  credentials.password.copy(page_->password.data(), page_->password.size());
  page_->timeout = session.lease().timeout();
  addresses.push_back('\0');
  addresses.copy(page_->addresses.data(), page_->addresses.size());
  page_->is_set = true;
}

void SessionForGuard::Close() const {
  if (!page_->is_set) return;
  std::vector<zookeeper::Endpoint> endpoints;
  std::istringstream lines(page_->addresses.data());
  for (zookeeper::Endpoint one; lines >> one.address >> one.name;) endpoints.push_back(one);
  const auto transport = process::MakeTransport(options_.transport);
  zookeeper::CloseSession({page_->session_id, {page_->password.data(), page_->password.size()}},
                          endpoints, page_->timeout, options_.access, transport.get());
}

}  // namespace zklock::commands
