#include "protocol/children.h"

#include <algorithm>

namespace zklock::protocol {

Children::Children(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) Add(name);
}

Children::Children(const std::vector<std::string>& names) {
  for (const std::string& name : names) Add(name);
}

void Children::Reserve(std::size_t names, std::size_t bytes) {
  ends_.reserve(names);
  text_.reserve(bytes);
}

void Children::Add(std::string_view name) {
  text_.append(name);
  ends_.push_back(static_cast<std::uint32_t>(text_.size()));
}

bool Children::Has(std::string_view name) const { return std::find(begin(), end(), name) != end(); }

}  // namespace zklock::protocol
