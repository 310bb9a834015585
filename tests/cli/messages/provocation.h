#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/zklock.h"

namespace zklock::test {

/// Returns the constants of each `namespace message` in src/cli, and their texts.
[[nodiscard]] const std::map<std::string, std::string>& ListedMessages();

/// Returns whether `line` is the message with each {} filled in, possibly after a location
/// ("FILE:LINE: "). `values`: see Saying.
[[nodiscard]] bool IsMessage(const std::string& line, const std::string& text,
                             const Words& values = {});
/// Returns whether `words` are the message with each {} filled in.
[[nodiscard]] bool AreWordsOf(const std::string& words, const std::string& text);

/// A message that is expected.
struct Saying {
  Saying(const char* name) : message(name) {}  // NOLINT: a list of names reads better
  std::string message;                         ///< the name of its constant
  bool is_part = false;
  std::string words{};  ///< for a part: its text with each {} filled in
  /// A regular expression for what replaces each {}; "" is anything. Without values, each is
  /// anything.
  Words values{};

  [[nodiscard]] Saying With(Words its_values) const {
    Saying saying = *this;
    saying.values = std::move(its_values);
    return saying;
  }
};
/// Returns a message that is only part of a line. If it has a {} and few other words, `words` is
/// the expected expansion.
[[nodiscard]] inline Saying Part(const char* name, std::string words = "") {
  Saying saying(name);
  saying.is_part = true;
  saying.words = std::move(words);
  return saying;
}

/// Makes zklock print some messages. `provoke` returns its standard error or its terminal output.
struct Provocation {
  std::vector<Saying> says;
  std::function<std::string()> provoke;
};
using Provocations = std::vector<Provocation>;

/// Runs each and checks that zklock prints its messages (it may print others).
void CheckProvocations(const Provocations& provocations);

// One list per subject. Building a list starts nothing.
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
/// Messages that no test can provoke from a whole zklock: produced directly, each with the reason.
[[nodiscard]] Provocations SaidAloneProvocations();

/// Returns the standard error of a zklock that ended with `exit`.
[[nodiscard]] std::string Said(const Finished& finished, const Exit& exit);
/// Runs `zklock WORDS` until it ends, and returns its standard error.
[[nodiscard]] std::string SaidBy(const Words& words, int status);
/// Returns `zklock WORDS`, connecting to `servers`.
[[nodiscard]] ChildOptions ZklockAt(const std::string& servers, const Words& words);

}  // namespace zklock::test
