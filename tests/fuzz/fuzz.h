#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zklock::fuzz {

/// What a target does with one input, defined by each of them: returns whatever `input` is, and
/// requires what must hold.
void Try(std::string_view input);

/// A property. Where it does not hold, the sentence is printed and the process aborts, which the
/// fuzzer takes for a crash.
void Require(bool holds, std::string_view sentence);

/// The parts between separators: one more than there are separators, but `most` at the most, the
/// last of which then has the rest.
[[nodiscard]] std::vector<std::string> Split(std::string_view text, char separator,
                                             std::size_t most);

/// Takes the first part of `text`, up to a separator, and leaves what is behind it.
[[nodiscard]] std::string TakePart(std::string_view& text, char separator);

}  // namespace zklock::fuzz
