#include "cli/options/credentials.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/options/config.h"
#include "cli/text/messages.h"

namespace zklock::cli {
namespace {

// Far more than credentials need: a larger file is something else.
constexpr std::size_t kMostBytes = 65536;

[[noreturn]] void Refuse(const std::string& source, const std::string& what) {
  throw ConfigError(source + ": " + what);
}

[[noreturn]] void RefuseErrno(const std::string& source, int error,
                              std::string_view option = "--auth-file") {
  const std::string why = std::generic_category().message(error);
  const std::string shown = source.empty() ? "''" : source;
  ThrowUnread(source, error, shown + ": " + fmt::format(message::kSecretsUnread, why, option));
}

/// Describes what is wrong with a line; empty if it is a credential.
std::string FaultOf(std::string_view line) {
  const auto is_control = [](char byte) {
    const auto code = static_cast<unsigned char>(byte);
    return code < 0x20 || code == 0x7f;
  };
  // A carriage return or a tab would be an invisible part of the password.
  if (std::any_of(line.begin(), line.end(), is_control)) return message::kSecretControl;
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == line.size()) {
    return message::kNoCredential;
  }
  const std::string_view scheme = line.substr(0, colon);
  const auto is_plain = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
  };
  if (!std::all_of(scheme.begin(), scheme.end(), is_plain)) return message::kNoCredential;
  // The servers would accept such a line as a user name without a password.
  if (scheme == "digest" && line.find(':', colon + 1) == std::string_view::npos) {
    return message::kNoDigest;
  }
  return "";
}

std::string ReadAll(int fd, const std::string& path) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) RefuseErrno(path, errno);
    if (size == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
    if (text.size() > kMostBytes) Refuse(path, message::kTooLarge);
  }
}

/// Opens a file for reading. Throws ConfigError, with the text `no_file` if it is not a regular
/// one.
UniqueFd OpenRegular(const std::string& path, std::string_view option, const std::string& no_file,
                     struct stat& status) {
  // Non-blocking: a FIFO without a writer would block the open.
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) RefuseErrno(path, errno, option);
  // fstat, not stat: the path may name another file by now.
  if (fstat(file.get(), &status) != 0) RefuseErrno(path, errno, option);
  if (!S_ISREG(status.st_mode)) Refuse(path, no_file);
  return file;
}

}  // namespace

std::vector<zookeeper::AuthInfo> ParseCredentials(std::string_view text,
                                                  const std::string& source) {
  std::vector<zookeeper::AuthInfo> credentials;
  int number = 0;
  while (!text.empty()) {
    const std::string_view line = TakeUntil(text, '\n');
    ++number;
    if (line.find_first_not_of(' ') == std::string_view::npos || line.front() == '#') continue;
    const std::string fault = FaultOf(line);
    const std::string where = fmt::format("{}:{}", source, number);
    if (!fault.empty()) Refuse(where, fault);
    const std::size_t colon = line.find(':');
    credentials.push_back(
        {std::string(line.substr(0, colon)), std::string(line.substr(colon + 1)), where});
  }
  if (credentials.empty()) Refuse(source, message::kNoCredentials);
  return credentials;
}

UniqueFd OpenSecret(const std::string& path, std::string_view option) {
  struct stat status {};
  UniqueFd file = OpenRegular(path, option, message::kNoRegularFile, status);
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    throw UnsafeFile(path + ": " + message::kForeignFile);
  }
  if ((status.st_mode & 077) != 0) {
    throw UnsafeFile(path + ": " + message::kOpenFile);
  }
  return file;
}

void RequireReadable(const std::string& path, std::string_view option) {
  struct stat status {};
  (void)OpenRegular(path, option, fmt::format(message::kNoTlsFile, option), status);
}

void RequireKey(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  std::string text(kMostBytes, '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0 || static_cast<std::size_t>(size) == text.size()) return;
  text.resize(static_cast<std::size_t>(size));
  if (text.find("PRIVATE KEY-----") == std::string::npos) Refuse(path, message::kNoKey);
}

std::vector<zookeeper::AuthInfo> ReadCredentialsFile(const std::string& path) {
  // If credentials were given in place of a file name, the message must not repeat them.
  const std::size_t colon = path.find(':');
  if (colon != std::string::npos && access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    const std::string start = path.substr(0, colon);
    throw ConfigError(fmt::format(message::kSecretIsNoFile, start == "digest" ? start : "scheme"));
  }
  return ParseCredentials(ReadAll(OpenSecret(path, "--auth-file").get(), path), path);
}

std::optional<std::string> TakeSecret(const char* variable) {
  char* value = getenv(variable);
  if (value == nullptr) return std::nullopt;
  std::string taken = value;
  explicit_bzero(value, taken.size());
  unsetenv(variable);
  if (taken.empty()) return std::nullopt;
  return taken;
}

}  // namespace zklock::cli
