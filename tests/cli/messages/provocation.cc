#include "cli/messages/provocation.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>

#include "cli/documents/documents.h"
#include "support/source.h"

namespace zklock::test {
namespace {

/// Returns a pattern that matches every text to which a message can expand with `values`.
std::string PatternOf(const std::string& text, const Words& values = {}) {
  static const std::regex place(R"(\{\w*\})");
  static const std::regex special(R"([.^$|()\[\]*+?\\])");
  std::string pattern;
  std::size_t at = 0;
  std::size_t places = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), place), end; it != end; ++it, ++places) {
    const auto begin = static_cast<std::size_t>(it->position());
    const std::string value = places < values.size() ? values[places] : "";
    pattern += std::regex_replace(text.substr(at, begin - at), special, "\\$&");
    pattern += value.empty() ? ".*" : "(" + value + ")";
    at = begin + static_cast<std::size_t>(it->length());
  }
  REQUIRE((values.empty() || values.size() == places));
  return pattern + std::regex_replace(text.substr(at), special, "\\$&");
}

/// Adds the constants of one source file.
void ReadMessages(const std::string& source, std::map<std::string, std::string>& messages) {
  static const std::regex constant(R"re(constexpr char (k\w+)\[\] =((\s*"([^"\\]|\\.)*")+);)re");
  static const std::regex piece(R"re("(([^"\\]|\\.)*)")re");
  for (std::sregex_iterator it(source.begin(), source.end(), constant), end; it != end; ++it) {
    std::string text;
    const std::string pieces = (*it)[2];
    for (std::sregex_iterator one(pieces.begin(), pieces.end(), piece); one != end; ++one) {
      text += (*one)[1];
    }
    CAPTURE((*it)[1]);
    REQUIRE(messages.insert({(*it)[1], text}).second);
  }
}

std::map<std::string, std::string> ReadMessages() {
  std::map<std::string, std::string> messages;
  const std::filesystem::path root = SourcePath("src/cli");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    const auto file = entry.path().lexically_relative(root);
    const std::string text = ReadSource("src/cli/" + file.string());
    const bool has_messages = text.find("namespace message {") != std::string::npos ||
                              text.find("namespace zklock::cli::message {") != std::string::npos;
    if (has_messages) ReadMessages(text, messages);
  }
  return messages;
}

bool IsSaid(const Saying& saying, const std::string& text, const std::string& all) {
  if (saying.is_part) {
    if (saying.words.empty()) {
      return std::regex_search(all, std::regex(PatternOf(text, saying.values)));
    }
    return AreWordsOf(saying.words, text) && all.find(saying.words) != std::string::npos;
  }
  for (const std::string& line : Lines(all)) {
    if (IsMessage(line, text, saying.values)) return true;
  }
  return false;
}

}  // namespace

const std::map<std::string, std::string>& ListedMessages() {
  static const std::map<std::string, std::string> messages = ReadMessages();
  return messages;
}

bool IsMessage(const std::string& line, const std::string& text, const Words& values) {
  return std::regex_match(line, std::regex("zklock: (.*: )?" + PatternOf(text, values)));
}

bool AreWordsOf(const std::string& words, const std::string& text) {
  return std::regex_match(words, std::regex(PatternOf(text)));
}

void CheckProvocations(const Provocations& provocations) {
  for (const Provocation& provocation : provocations) {
    const std::string first = provocation.says.front().message;
    CAPTURE(first);
    std::string said;
    CHECK_NOTHROW(said = provocation.provoke());
    for (const Saying& saying : provocation.says) {
      CAPTURE(saying.message, saying.words, said);
      REQUIRE(ListedMessages().count(saying.message) == 1);
      CHECK(IsSaid(saying, ListedMessages().at(saying.message), said));
    }
  }
}

std::string Said(const Finished& finished, const Exit& exit) {
  CAPTURE(finished.err);
  CHECK(finished.exit == exit);
  return finished.err;
}

std::string SaidBy(const Words& words, int status) {
  return Said(RunZklock(words), Exited(status));
}

ChildOptions ZklockAt(const std::string& servers, const Words& words) {
  ChildOptions options = With(Zklock(words), {"ZKLOCK_SERVERS=" + servers});
  return options;
}

}  // namespace zklock::test
