// The input is parsed as a configuration file.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/config.h"
#include "fuzz/fuzz.h"

namespace zklock::fuzz {
namespace {

constexpr const char* kFile = "a file";
const std::vector<std::string_view> kNames = {"servers", "root", "wait", "label", "quiet"};

void TrySetting(const cli::Setting& setting, const std::vector<std::string>& lines) {
  Require(std::find(kNames.begin(), kNames.end(), setting.name) != kNames.end(),
          "a setting names a configurable option");
  Require(setting.line >= 1 && static_cast<std::size_t>(setting.line) <= lines.size(),
          "a setting's line is one of the file's");
  const std::string& line = lines[static_cast<std::size_t>(setting.line) - 1];
  const std::size_t equals = line.find('=');
  Require(equals != std::string::npos, "a setting has an equals sign");
  Require(line.find(setting.name) < equals, "the name precedes the equals sign");
  Require(setting.value.empty() || line.find(setting.value, equals + 1) != std::string::npos,
          "its value stands behind that, letter by letter");
  const auto written = cli::ConfigText(setting.value);
  Require(written.has_value(), "a setting that was read can be written");
  const auto again =
      cli::ParseConfig(setting.name + " = " + *written + "  # written", kFile, kNames);
  Require(again.size() == 1 && again.front().value == setting.value,
          "a value is written so that it is read the same");
  // Quoting the value does not change it.
  if (setting.value.find('"') != std::string::npos) return;
  const auto quoted =
      cli::ParseConfig(setting.name + " = \"" + setting.value + "\" # quoted", kFile, kNames);
  Require(quoted.size() == 1 && quoted.front().value == setting.value,
          "a value in quotes is taken as it is");
}

}  // namespace

void Try(std::string_view input) {
  std::vector<std::string> lines = Split(input, '\n', input.size() + 1);
  try {
    for (const cli::Setting& setting : cli::ParseConfig(input, kFile, kNames))
      TrySetting(setting, lines);
  } catch (const cli::ConfigError& error) {
    Require(std::string(error.what()).rfind(std::string(kFile) + ":", 0) == 0,
            "an error names file and line");
  }
}

}  // namespace zklock::fuzz
