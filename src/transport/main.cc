// zklock-transport: zklock's connection to one server, with TLS and SASL. Only zklock starts it,
// with a socket to zklock as standard input and output:
//
//   zklock-transport ADDRESS:PORT NAME [--connected] [--tls] [--tls-ca FILE] [--tls-cert FILE]
//       [--tls-key FILE] [--tls-verify full|ca] [--sasl gssapi|digest-md5] [--sasl-service NAME]
//
// NAME is the server as the user wrote it; the server's certificate must be valid for this name.
// With --connected, descriptor 3 is a connection to the server that a proxy command has made. For
// digest-md5, descriptor 4 is a pipe with USER:PASSWORD, which must not be a command-line argument.
// zklock reports the last line on standard error if it cannot use any server.

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#ifdef ZKLOCK_SANITIZED
#include <sanitizer/lsan_interface.h>
#endif
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/transport_interface.h"
#include "transport/channel.h"
#include "transport/sasl.h"
#include "transport/tls.h"

namespace zklock::transport {
namespace {

using transport_interface::kSecret;

constexpr int kExitUsage = 64;

struct Options {
  std::string address;
  std::string name;
  bool is_connected = false;
  bool tls = false;
  TlsOptions tls_options;
  SaslOptions sasl;
};

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

// System calls that execute a program or access another process. Only an attacker would make this
// process use them.
constexpr std::array<std::uint32_t, 5> kForbidden = {SYS_execve, SYS_execveat, SYS_ptrace,
                                                     SYS_process_vm_readv, SYS_process_vm_writev};

/// Makes the calls in kForbidden, and all calls of another architecture (x32 included), fail with
/// EPERM.
void Forbid() {
  constexpr auto kX32 = 0x40000000U;
  constexpr std::uint32_t kRefusal = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, kRefusal),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kRefusal),
  };
  for (const std::uint32_t number : kForbidden) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, kRefusal));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

void Limit(int resource, rlim_t most) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  limit.rlim_max = std::min(limit.rlim_max, most);
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

/// Gives up the privileges that neither TLS nor SASL needs. Kerberos reads its configuration,
/// queries name servers and KDCs, and writes tickets, so access to files and sockets is not
/// restricted. Skips any measure that the kernel does not support.
void GiveUpPrivileges() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (kArchitecture != 0) Forbid();
  Limit(RLIMIT_CORE, 0);  // a core file would contain passwords and keys
#ifndef ZKLOCK_SANITIZED  // the sanitizers' runtime needs much more
  Limit(RLIMIT_DATA, rlim_t{256} << 20U);
#endif
}

/// Returns the host in NAME: "zk1" for "zk1:2281", "::1" for "[::1]:2281". Drops a trailing dot,
/// which only tells the resolver not to append search domains: certificates and Kerberos use the
/// name without it.
std::string HostOf(const std::string& name) {
  std::string host = name.substr(0, name.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.ends_with('.')) host.pop_back();
  return host.substr(0, host.find('%'));
}

void ReadSecret(SaslOptions& sasl) {
  std::string text;
  std::array<char, 1024> buffer{};
  const UniqueFd secret(kSecret);
  for (ssize_t size = 0; (size = read(kSecret, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) std::exit(kExitUsage);
  sasl.user = text.substr(0, colon);
  sasl.password = text.substr(colon + 1);
}

Options ReadOptions(int argc, char** argv) {
  Options options;
  const auto value = [&](int& i) -> std::string {
    if (++i >= argc) std::exit(kExitUsage);
    return argv[i];
  };
  if (argc < 3) std::exit(kExitUsage);
  options.address = argv[1];
  options.name = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--connected") {
      options.is_connected = true;
    } else if (word == "--tls") {
      options.tls = true;
    } else if (word == "--tls-ca") {
      options.tls_options.ca = value(i);
    } else if (word == "--tls-cert") {
      options.tls_options.cert = value(i);
    } else if (word == "--tls-key") {
      options.tls_options.key = value(i);
    } else if (word == "--tls-verify") {
      options.tls_options.checks_name = value(i) != "ca";
    } else if (word == "--sasl") {
      options.sasl.mechanism = value(i);
    } else if (word == "--sasl-service") {
      options.sasl.service = value(i);
    } else {
      std::exit(kExitUsage);
    }
  }
  if (options.sasl.mechanism == "digest-md5") ReadSecret(options.sasl);
  return options;
}

UniqueFd Connect(const Options& options) {
  if (!options.is_connected) {
    Report("does not answer connection attempts: a firewall?");
    return ConnectTo(options.address);
  }
  UniqueFd socket(transport_interface::kServer);
  fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  return socket;
}

std::unique_ptr<Channel> OpenChannel(const Options& options) {
  if (!options.tls) return std::make_unique<PlainChannel>(Connect(options));
  const auto connect = [&options] {
    UniqueFd socket = Connect(options);
    Report(
        "accepts the connection, but does not answer in TLS: a port without TLS, or is it hung?");
    return socket;
  };
  return OpenTls(connect, HostOf(options.name), options.tls_options);
}

void Run(const Options& options) {
  const std::unique_ptr<Channel> channel = OpenChannel(options);
  if (!options.sasl.mechanism.empty()) {
    Report("accepts the connection, but does not complete SASL: is it hung?");
    Authenticate(*channel, HostOf(options.name), options.sasl);
  }
  DiscardReport();
  Relay(*channel);
}

}  // namespace
}  // namespace zklock::transport

#ifdef ZKLOCK_SANITIZED
// Leak detection needs ptrace(2), which is forbidden. Its error message would become the last line
// on standard error.
int __lsan_is_turned_off() { return 1; }
#endif

int main(int argc, char** argv) {
  using namespace zklock::transport;
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  GiveUpPrivileges();
  try {
    Run(ReadOptions(argc, argv));
    return 0;
  } catch (const Failure& failure) {
    const std::string mark(failure.refusal ? 1 : 0, zklock::transport_interface::kRefusalMark);
    Report(mark + failure.what());
    return 1;
  } catch (const std::exception& error) {
    Report(std::string("zklock-transport: ") + error.what());
    return 1;
  }
}
