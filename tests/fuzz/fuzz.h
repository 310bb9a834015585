#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zklock::fuzz {

/// Runs one input through the target; each target defines its own. It must return for any input,
/// and checks the target's properties with Require().
void Try(std::string_view input);

/// If `holds` is false, prints `sentence` and aborts, which the fuzzer reports as a crash.
void Require(bool holds, std::string_view sentence);

/// Splits `text` at separators into at most `most` parts; the last part contains the rest.
[[nodiscard]] std::vector<std::string> Split(std::string_view text, char separator,
                                             std::size_t most);

/// Removes the first part of `text`, up to a separator, and returns it. The separator is removed
/// too.
[[nodiscard]] std::string TakePart(std::string_view& text, char separator);

}  // namespace zklock::fuzz
