#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zklock::cli {

/// Returns the candidate that `word` is most likely a misspelling of, if one is close enough: it
/// begins with `word`, or at most a third of the letters of `word` (but at least one) are wrong,
/// missing, superfluous or swapped with the next one. Leading dashes do not count as letters.
[[nodiscard]] std::optional<std::string> Nearest(std::string_view word,
                                                 const std::vector<std::string>& candidates);

/// Returns "; did you mean 'exclusive'?", or `otherwise` if no candidate is close enough.
[[nodiscard]] std::string DidYouMean(std::string_view word,
                                     const std::vector<std::string>& candidates,
                                     std::string_view otherwise);

/// Returns the text to append to "unknown ...": what a user of flock(1), git, systemctl and the
/// like may mean by a word or option that `subcommand` (empty: zklock itself) does not know. Empty
/// if there is nothing to suggest.
[[nodiscard]] std::string KnownElsewhere(std::string_view word, std::string_view subcommand);

}  // namespace zklock::cli
