#include "process/transport/name_lookup.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "process/loop/child.h"

namespace zklock::process {
namespace {

struct AddressListDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// Appends the addresses in the client library's format and returns 0, or returns getaddrinfo's
/// error.
int Resolve(const zookeeper::Server& server, int flags, std::vector<std::string>& addresses) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found);
  if (error != 0) return error;
  const std::unique_ptr<addrinfo, AddressListDeleter> list(found);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (getnameinfo(one->ai_addr, one->ai_addrlen, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
      addresses.push_back(std::string(host.data()) + ":" + port.data());
    }
  }
  return 0;
}

/// Returns the address in the client library's format if the host is a plain IPv4 or IPv6 address.
/// Even for these, getaddrinfo would ask the kernel for all addresses of this host.
std::optional<std::string> PlainAddress(const zookeeper::Server& server) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, server.host.c_str(), address.data()) == 1 &&
        inet_ntop(family, address.data(), text.data(), text.size()) != nullptr) {
      return std::string(text.data()) + ":" + server.port;
    }
  }
  return std::nullopt;
}

void Write(int to, const std::string& line) {
  while (write(to, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

/// In the helper: writes one line for each address or failure, "INDEX ADDRESS" or "INDEX !ERROR".
void Answer(const zookeeper::Server& server, std::size_t index, int to) {
  std::vector<std::string> addresses;
  const int error = Resolve(server, AI_ADDRCONFIG, addresses);
  const std::string prefix = std::to_string(index) + " ";
  // One write for each line: a pipe neither splits nor mixes writes this short.
  if (error != 0) Write(to, prefix + "!" + std::to_string(error) + "\n");
  for (const std::string& address : addresses) Write(to, prefix + address + "\n");
}

[[noreturn]] void AnswerAndExit(const std::vector<zookeeper::Server>& servers, int to) {
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < servers.size(); ++i) {
    try {
      threads.emplace_back(Answer, servers[i], i, to);
    } catch (const std::system_error&) {
      Answer(servers[i], i, to);  // no thread could be created
    }
  }
  Answer(servers.front(), 0, to);
  for (std::thread& thread : threads) thread.join();
  _exit(0);
}

}  // namespace

NameLookup::NameLookup(const std::vector<zookeeper::Server>& servers) {
  for (const zookeeper::Server& server : servers) {
    std::vector<std::string> addresses;
    if (auto address = PlainAddress(server)) {
      addresses.push_back(*std::move(address));
    } else if (Resolve(server, AI_NUMERICHOST, addresses) != 0) {  // fe80::1%eth0, 127.1
      servers_.push_back(server);
      continue;
    }
    for (std::string& address : addresses) {
      found_.endpoints.push_back({std::move(address), zookeeper::ToString(server)});
    }
  }
  answered_.resize(servers_.size(), false);
  if (servers_.empty()) {
    Finish();
    return;
  }
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  answers_.Reset(pipe_ends[0]);
  UniqueFd to(pipe_ends[1]);
  const pid_t parent = getpid();
  helper_ = fork();
  if (helper_ < 0) {
    throw std::system_error(errno, std::generic_category(), "fork for looking up names");
  }
  if (helper_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    AnswerAndExit(servers_, to.get());
  }
}

NameLookup::~NameLookup() {
  if (helper_ <= 0) return;
  kill(helper_, SIGKILL);
  WaitFor(helper_);
}

EventSource::Interest NameLookup::GetInterest() {
  if (result_) return {};
  return {.fd = answers_.get(), .events = POLLIN};
}

void NameLookup::OnReady(short revents) {
  if (result_ || revents == 0) return;
  std::array<char, 4096> buffer{};
  const ssize_t size = read(answers_.get(), buffer.data(), buffer.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) return Finish();
  text_.append(buffer.data(), static_cast<std::size_t>(size));
  std::size_t begin = 0;
  for (std::size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    TakeLine(text_.substr(begin, end - begin));
  }
  text_.erase(0, begin);
}

void NameLookup::TakeLine(const std::string& line) {
  std::string_view word = line;
  const auto index = ParseWhole<std::size_t>(TakeUntil(word, ' '));
  if (!index || *index >= servers_.size() || word.empty()) return;
  answered_[*index] = true;
  const zookeeper::Server& server = servers_[*index];
  if (word.front() != '!') {
    found_.endpoints.push_back({std::string(word), zookeeper::ToString(server)});
    return;
  }
  int error = 0;
  std::from_chars(word.data() + 1, word.data() + word.size(), error);
  found_.failures.push_back({server, error, error == EAI_NONAME});
}

void NameLookup::Finish() {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (!answered_[i]) found_.failures.push_back({servers_[i], std::nullopt, false});
  }
  result_ = found_;
}

}  // namespace zklock::process
