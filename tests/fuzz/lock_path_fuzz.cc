// The input is a root on the first line, followed by a LOCK.

#include <algorithm>
#include <string>
#include <variant>

#include "fuzz/fuzz.h"
#include "fuzz/text.h"
#include "protocol/lock_path.h"

namespace zklock::fuzz {
namespace {

/// Characters that ZooKeeper's PathUtils.validatePath accepts. It sees everything above U+FFFF as
/// surrogates.
bool MayBeInPath(char32_t c) {
  return !IsControl(c) && !(c >= 0xD800 && c <= 0xF8FF) && !(c >= 0xFFF0);
}

/// The rules in lock_path.h.
bool IsGood(const std::string& path) {
  const auto characters = DecodeUtf8(path);
  if (!characters || !path.starts_with('/')) return false;
  if (!std::all_of(characters->begin(), characters->end(), MayBeInPath)) return false;
  const std::string framed = path + '/';
  for (const char* const part : {"//", "/./", "/../"}) {
    if (framed.find(part) != std::string::npos) return false;
  }
  return !framed.starts_with("/zookeeper/");
}

}  // namespace

void Try(std::string_view input) {
  const std::string root = TakePart(input, '\n');
  const std::string lock(input);
  const bool good_root = root == "/" || IsGood(root);
  const auto checked = protocol::CheckAbsolutePath(root);
  Require(std::holds_alternative<std::string>(checked) == (good_root && root != "/"),
          "a root is accepted by the rules");
  if (!good_root) return;

  const bool absolute = lock.starts_with('/');
  const std::string expected = absolute ? lock : (root == "/" ? "" : root) + '/' + lock;
  const auto resolved = protocol::ResolveLock(lock, root);
  const auto* const path = std::get_if<std::string>(&resolved);
  Require((path != nullptr) == (!lock.empty() && IsGood(expected)),
          "a LOCK is accepted by the rules");
  if (path == nullptr) return;
  Require(*path == expected, "a LOCK is resolved below its root");
  Require(protocol::ResolveLock(*path, root) == resolved, "an absolute path stays");

  const std::string parent = protocol::ParentOf(*path);
  const std::string base(protocol::BaseOf(*path));
  Require(!base.empty() && base.find('/') == std::string::npos, "the last part is one part");
  Require((parent == "/" ? "" : parent) + '/' + base == *path, "parent and last part are the path");
}

}  // namespace zklock::fuzz
