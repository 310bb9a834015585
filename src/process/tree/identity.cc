#include "process/tree/identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include "base/random.h"
#include "base/read_file.h"
#include "process/loop/system_error.h"
#include "process/tree/process_tree.h"

namespace zklock::process {
namespace {

struct PasswdEntry {
  std::string_view name;
  uid_t uid;
};

/// NAME:PASSWORD:UID:…
std::optional<PasswdEntry> ParsePasswdLine(std::string_view line) {
  const std::size_t after_name = line.find(':');
  if (after_name == std::string_view::npos || after_name == 0) return std::nullopt;
  const std::size_t before_uid = line.find(':', after_name + 1);
  if (before_uid == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(before_uid + 1);
  PasswdEntry entry{line.substr(0, after_name), 0};
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), entry.uid);
  if (parsed.ec != std::errc() || parsed.ptr == rest.data() + rest.size() || *parsed.ptr != ':') {
    return std::nullopt;
  }
  return entry;
}

/// Removes the first line from `text` and returns it without its newline.
std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::string UserName(uid_t uid) {
  std::string claimed;
  for (const char* const variable : {"USER", "LOGNAME"}) {
    const char* const value = std::getenv(variable);
    if (claimed.empty() && value != nullptr) claimed = value;
  }
  const std::string passwd = ReadFile("/etc/passwd").value_or("");
  for (std::string_view rest = passwd; !rest.empty();) {
    const std::string_view line = TakeLine(rest);
    const std::optional<PasswdEntry> entry = ParsePasswdLine(line);
    if (!entry) continue;
    if (entry->uid == uid) return std::string(entry->name);
    // The name belongs to another uid: the environment still names a previous user.
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
