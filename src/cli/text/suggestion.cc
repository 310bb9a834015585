#include "cli/text/suggestion.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include "cli/text/messages.h"

namespace zklock::cli {
namespace {

constexpr std::size_t kFewestLetters = 2;
constexpr std::size_t kMostLetters = 40;  // longer than any misspelt candidate

std::string_view WithoutDashes(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

/// Returns how many letters have to be changed, added, removed or swapped with the next one to turn
/// `b` into `a` (optimal string alignment).
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t changed = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({changed, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

/// Words of other programs.
struct Foreign {
  std::string_view words;       ///< separated by spaces, with a space at each end
  std::string_view subcommand;  ///< the subcommand that does it
  std::string_view suggestion;  ///< empty: every run does it
};
constexpr Foreign kForeign[] = {
    {" -s --shared --rdlock ", "read", "zklock read"},
    {" -x -e --exclusive --wrlock ", "exclusive", "zklock exclusive"},
    {" -u --unlock --un ", "release", "zklock release"},
    {" -n --nb --nonblock --nonblocking --fail ", "try", "zklock try"},
    {" --ttl --lease ", "", "--session-timeout"},
    {" -o --close ", "", ""},
    {" list ls ps show status info query top holders ", "", "inspect"},
    {" lock acquire run exec flock start with ", "", "exclusive"},
    {" hold ", "", "exclusive --hold"},
    {" reserve freeze ", "", "exclusive --reserve"},
    {" unlock free remove rm delete del kill cancel stop ", "", "release"},
    {" shared rlock read-lock ", "", "read"},
    {" wlock write-lock ", "", "write"},
    {" trylock try-lock nonblock ", "", "try"},
    {" check ", "", "inspect --check"},
    {" watch monitor ", "", "inspect --watch"},
    {" metrics ", "", "inspect --prometheus"},
    {" history log ", "", "inspect --history"},
    {" help ", "", "--help"},
    {" version ", "", "--version"},
};

}  // namespace

std::string KnownElsewhere(std::string_view word, std::string_view subcommand) {
  const std::string padded = fmt::format(" {} ", word);
  for (const Foreign& one : kForeign) {
    if (one.words.find(padded) == std::string_view::npos) continue;
    const bool takes_lock = subcommand != "inspect" && subcommand != "release";
    const bool is_done = one.suggestion.empty() ? takes_lock : one.subcommand == subcommand;
    if (!subcommand.empty() && is_done) return fmt::format(message::kDoneAlready, subcommand);
    return takes_lock && !one.suggestion.empty() ? fmt::format(message::kDidYouMean, one.suggestion)
                                                 : "";
  }
  return "";
}

std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  const std::string_view letters = WithoutDashes(word);
  if (letters.size() < kFewestLetters || letters.size() > kMostLetters) return std::nullopt;
  std::size_t least = std::max<std::size_t>(1, letters.size() / 3) + 1;
  std::optional<std::string> nearest;
  for (const std::string& candidate : candidates) {
    const std::string_view other = WithoutDashes(candidate);
    // A single letter is not a candidate: it is one edit away from too many words.
    if (other.size() < kFewestLetters) continue;
    const std::size_t distance =
        other.starts_with(letters) ? std::size_t{1} : Distance(letters, other);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates,
                       std::string_view otherwise) {
  if (const auto nearest = Nearest(word, candidates)) {
    return fmt::format(message::kDidYouMean, *nearest);
  }
  return std::string(otherwise);
}

}  // namespace zklock::cli
