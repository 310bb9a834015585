#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/zklock.h"

namespace zklock::test {

/// The constants of src/cli/messages.h and their texts.
[[nodiscard]] const std::map<std::string, std::string>& ListedMessages();

/// Whether `line` is the message, with something in place of each {}, perhaps behind a place of its
/// own ("FILE:LINE: ").
[[nodiscard]] bool IsMessage(const std::string& line, const std::string& text);
/// Whether `words` are the message, with something in place of each {}.
[[nodiscard]] bool AreWordsOf(const std::string& words, const std::string& text);

/// A message that is to be said.
struct Saying {
  Saying(const char* name) : message(name) {}  // NOLINT: a list of names reads better
  std::string message;                         ///< its constant's name
  bool is_part = false;
  std::string words{};  ///< of a part, with what is in place of each {}
};
/// A message that is a part of a line: one with a {} in it, and few words besides, these words.
[[nodiscard]] inline Saying Part(const char* name, std::string words = "") {
  Saying saying(name);
  saying.is_part = true;
  saying.words = std::move(words);
  return saying;
}

/// What makes zklock say some messages; what it said on standard error, or on its terminal.
struct Provocation {
  std::vector<Saying> says;
  std::function<std::string()> provoke;
};
using Provocations = std::vector<Provocation>;

/// Each provokes, and checks that zklock says just those (and whatever else besides).
void CheckProvocations(const Provocations& provocations);

// By theme. Making the list starts nothing.
[[nodiscard]] Provocations PathProvocations();
[[nodiscard]] Provocations RunProvocations();
[[nodiscard]] Provocations QueueProvocations();
[[nodiscard]] Provocations LossProvocations();
[[nodiscard]] Provocations ServerProvocations();
[[nodiscard]] Provocations AnswerProvocations();
[[nodiscard]] Provocations LockProvocations();
[[nodiscard]] Provocations InspectProvocations();
[[nodiscard]] Provocations ReleaseProvocations();
[[nodiscard]] Provocations NestingProvocations();
/// What no test can make happen to a whole zklock, and why: said by itself.
[[nodiscard]] Provocations SaidAloneProvocations();

/// What a zklock said that has ended like this.
[[nodiscard]] std::string Said(const Finished& finished, const Exit& exit);
/// `zklock WORDS`, to its end.
[[nodiscard]] std::string SaidBy(const Words& words, int status);
/// `zklock WORDS`, by way of `servers`.
[[nodiscard]] ChildOptions ZklockAt(const std::string& servers, const Words& words);

}  // namespace zklock::test
