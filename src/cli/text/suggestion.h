#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zklock::cli {

/// The candidate that `word` is most likely a misspelling of, if one is close enough: `word` is a
/// beginning of it, or up to a third of the letters of `word`, but at least one, are wrong,
/// missing, too many or swapped with the next one. Leading dashes do not count as letters.
[[nodiscard]] std::optional<std::string> Nearest(std::string_view word,
                                                 const std::vector<std::string>& candidates);

/// "; did you mean 'exclusive'?", or `otherwise` if no candidate is close enough.
[[nodiscard]] std::string DidYouMean(std::string_view word,
                                     const std::vector<std::string>& candidates,
                                     std::string_view otherwise);

}  // namespace zklock::cli
