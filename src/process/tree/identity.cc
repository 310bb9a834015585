#include "process/tree/identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include "base/random.h"
#include "base/read_file.h"
#include "base/text.h"
#include "process/loop/system_error.h"
#include "process/tree/process_tree.h"

namespace zklock::process {
namespace {

struct PasswdEntry {
  std::string_view name;
  uid_t uid;
};

/// Parses NAME:PASSWORD:UID:…
std::optional<PasswdEntry> ParsePasswdLine(std::string_view line) {
  const std::string_view name = TakeUntil(line, ':');
  TakeUntil(line, ':');  // the password
  const std::size_t after_uid = line.find(':');
  const auto uid = ParseWhole<uid_t>(line.substr(0, after_uid));
  if (name.empty() || !uid || after_uid == std::string_view::npos) return std::nullopt;
  return PasswdEntry{name, *uid};
}

std::string UserName(uid_t uid) {
  std::string claimed;
  for (const char* const variable : {"USER", "LOGNAME"}) {
    const char* const value = std::getenv(variable);
    if (claimed.empty() && value != nullptr) claimed = value;
  }
  const std::string passwd = ReadFile("/etc/passwd").value_or("");
  for (std::string_view rest = passwd; !rest.empty();) {
    const std::string_view line = TakeUntil(rest, '\n');
    const std::optional<PasswdEntry> entry = ParsePasswdLine(line);
    if (!entry) continue;
    if (entry->uid == uid) return std::string(entry->name);
    // The name belongs to another uid, so the environment still names a previous user.
    if (entry->name == claimed) claimed.clear();
  }
  return claimed.empty() ? std::to_string(uid) : claimed;
}

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  Check(gethostname(name.data(), name.size()), "gethostname");
  return name.data();
}

}  // namespace

Identity ThisProcess() {
  Identity identity;
  identity.host = HostName();
  identity.user = UserName(geteuid());
  identity.pid = getpid();
  const std::string boot_id = ReadFile("/proc/sys/kernel/random/boot_id").value_or("");
  identity.boot_id = boot_id.substr(0, boot_id.find('\n'));
  if (const auto stat = ReadProcessStat(identity.pid)) identity.start_time = stat->id.start_time;
  struct stat space {};
  if (stat("/proc/self/ns/pid", &space) == 0) identity.pid_namespace = space.st_ino;
  return identity;
}

std::string MakeUuid() {
  std::array<unsigned char, 16> bytes{};
  FillRandomly(std::as_writable_bytes(std::span(bytes)));
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0FU) | 0x40U);  // version 4
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3FU) | 0x80U);  // RFC 4122's variant
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += "0123456789abcdef"[bytes[i] >> 4U];
    text += "0123456789abcdef"[bytes[i] & 0x0FU];
  }
  return text;
}

}  // namespace zklock::process
