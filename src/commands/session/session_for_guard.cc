#include "commands/session/session_for_guard.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "process/transport/transport_helper.h"
#include "zookeeper/orphaned_session.h"

namespace zklock::commands {

void SessionForGuard::Set(const zookeeper::Session& session) {
  const zookeeper::Credentials& credentials = *session.credentials();
  Clear();
  page_->session_id = credentials.session_id;
  credentials.password.copy(page_->password.data(), page_->password.size());
  page_->timeout = session.lease().timeout();
  WriteAddresses(session);
  page_->is_set = true;
}

void SessionForGuard::UpdateAddresses(const zookeeper::Session& session) {
  if (page_->is_set && page_->session_id == session.session_id()) WriteAddresses(session);
}

void SessionForGuard::WriteAddresses(const zookeeper::Session& session) {
  std::vector<zookeeper::Endpoint> endpoints = session.endpoints();
  const std::string last = session.last_server();
  std::stable_partition(endpoints.begin(), endpoints.end(),
                        [&](const zookeeper::Endpoint& one) { return one.name == last; });
  const int unused = 1 - page_->in_use;
  auto& room = page_->addresses.at(static_cast<std::size_t>(unused));
  std::string addresses;
  for (const zookeeper::Endpoint& endpoint : endpoints) {
    const std::string line = endpoint.address + " " + endpoint.name + "\n";
    if (addresses.size() + line.size() < room.size()) addresses += line;
  }
  addresses.push_back('\0');
  addresses.copy(room.data(), room.size());
  page_->in_use = unused;
}

void SessionForGuard::Close() const {
  if (!page_->is_set) return;
  std::vector<zookeeper::Endpoint> endpoints;
  std::string_view lines = page_->addresses.at(static_cast<std::size_t>(page_->in_use)).data();
  while (!lines.empty()) {
    std::string_view name = TakeUntil(lines, '\n');
    const std::string_view address = TakeUntil(name, ' ');
    endpoints.push_back({std::string(address), std::string(name)});
  }
  const auto transport = process::MakeTransport(options_.transport);
  zookeeper::CloseSession({page_->session_id, {page_->password.data(), page_->password.size()}},
                          endpoints, page_->timeout, options_.access, transport.get());
}

}  // namespace zklock::commands
