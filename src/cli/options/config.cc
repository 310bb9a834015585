#include "cli/options/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "base/text.h"
#include "cli/text/messages.h"
#include "cli/text/suggestion.h"

namespace zklock::cli {
namespace {

using Names = std::vector<std::string_view>;

constexpr std::string_view kWhiteSpace = " \t\r";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // in UTF-8

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

/// Returns `text` up to a `#` at its start or after white space.
std::string_view WithoutComment(std::string_view text) {
  for (std::size_t i = text.find('#'); i != std::string_view::npos; i = text.find('#', i + 1)) {
    if (i == 0 || kWhiteSpace.find(text[i - 1]) != std::string_view::npos) return text.substr(0, i);
  }
  return text;
}

/// Returns the value in the text after the `=`; none if quotes are not closed, or if anything but a
/// comment follows them.
std::optional<std::string_view> ReadValue(std::string_view text) {
  text = Trimmed(text);
  if (!text.starts_with('"')) return Trimmed(WithoutComment(text));
  const std::size_t end = text.find('"', 1);
  if (end == std::string_view::npos) return std::nullopt;
  if (!Trimmed(WithoutComment(text.substr(end + 1))).empty()) return std::nullopt;
  return text.substr(1, end - 1);
}

bool HasControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\r') || byte == 0x7f;
  });
}

std::optional<std::string> UserFile() {
  const auto under = [](const char* directory, const char* rest) -> std::optional<std::string> {
    if (directory == nullptr || directory[0] != '/') return std::nullopt;
    return std::string(directory) + rest;
  };
  if (auto file = under(getenv("XDG_CONFIG_HOME"), "/zklock.conf")) return file;
  return under(getenv("HOME"), "/.config/zklock.conf");
}

std::string ReadNamedFile(const std::string& file) {
  const std::unique_ptr<std::FILE, CloseFile> stream(std::fopen(file.c_str(), "re"));
  if (stream == nullptr) ThrowUnread(file, errno);
  std::string text;
  std::array<char, 4096> piece{};
  std::size_t size = 0;
  // The file may be a FIFO or a device, so its size is not known before it is read.
  while ((size = std::fread(piece.data(), 1, piece.size(), stream.get())) > 0) {
    text.append(piece.data(), size);
    if (text.size() > kLargestFile) throw ConfigError(fmt::format(message::kFileTooLarge, file));
  }
  if (std::ferror(stream.get()) != 0) ThrowUnread(file, errno);
  return text;
}

void AddSettings(const std::string& text, const std::string& file, const Names& names,
                 std::vector<Setting>& settings) {
  auto read = ParseConfig(text, file, names);
  settings.insert(settings.end(), std::make_move_iterator(read.begin()),
                  std::make_move_iterator(read.end()));
}

}  // namespace

std::vector<Setting> ParseConfig(std::string_view text, const std::string& file,
                                 const Names& names) {
  std::vector<Setting> settings;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeUntil(text, '\n');
    const auto wrong = [&](const std::string& what) {
      return ConfigError(file + ":" + std::to_string(number) + ": " + what);
    };
    if (HasControlCharacter(line)) throw wrong(message::kLineControl);
    if (Trimmed(WithoutComment(line)).empty()) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) throw wrong(message::kNoSetting);
    const std::string name(Trimmed(line.substr(0, equals)));
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const std::vector<std::string> known(names.begin(), names.end());
      throw wrong(fmt::format(message::kUnknownSetting, name,
                              DidYouMean(name, known, message::kKnownSettings)));
    }
    const auto before = std::find_if(settings.begin(), settings.end(),
                                     [&](const Setting& one) { return one.name == name; });
    // If both lines were accepted, editing the first one would have no effect, to the user's
    // surprise.
    if (before != settings.end()) throw wrong(fmt::format(message::kSetTwice, name, before->line));
    const auto value = ReadValue(line.substr(equals + 1));
    if (!value) throw wrong(message::kOpenQuotes);
    settings.push_back({name, std::string(*value), file, number});
  }
  return settings;
}

std::optional<std::string> ConfigText(std::string_view value) {
  if (HasControlCharacter(value)) return std::nullopt;
  for (const std::string& text : {std::string(value), '"' + std::string(value) + '"'}) {
    if (ReadValue(text + " #") == value) return text;
  }
  return std::nullopt;
}

Config ReadConfig(const std::optional<std::string>& named, const Names& names) {
  Config config;
  if (named) {
    AddSettings(ReadNamedFile(*named), *named, names, config.settings);
    return config;
  }
  const std::string systems = "/etc/zklock.conf";
  const FoundFile system = ReadFoundFile(systems);
  // If this file were ignored, a run could use different servers from all other runs.
  if (!system.unused.empty()) {
    throw ConfigError(fmt::format(message::kFileUnread, systems, system.unused));
  }
  if (system.text) AddSettings(*system.text, systems, names, config.settings);
  for (Setting& setting : config.settings) setting.is_systems = true;
  if (const auto users = UserFile()) {
    const FoundFile user = ReadFoundFile(*users);
    if (!user.unused.empty()) {
      config.unused_file = fmt::format(message::kFileUnused, *users, user.unused);
    }
    if (user.text) AddSettings(*user.text, *users, names, config.settings);
  }
  return config;
}

}  // namespace zklock::cli
