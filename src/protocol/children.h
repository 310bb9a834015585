#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace zklock::protocol {

/// The names of a znode's children, in the order in which the servers return them. They occupy two
/// blocks of memory, no matter how many there are: the list of a long queue is read often, and a
/// string for each name would cost more than all other work on the list.
class Children {
 public:
  /// Yields std::string_view, valid until the list changes.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = std::string_view;

    Iterator() = default;
    Iterator(const Children& all, std::size_t index) : all_(&all), index_(index) {}
    std::string_view operator*() const { return (*all_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) { return {*all_, index_++}; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    const Children* all_ = nullptr;
    std::size_t index_ = 0;
  };

  Children() = default;
  Children(std::initializer_list<std::string_view> names);
  Children(const std::vector<std::string>& names);

  /// Reserves memory for this many names with this many bytes in total.
  void Reserve(std::size_t names, std::size_t bytes);
  void Add(std::string_view name);

  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] std::string_view operator[](std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    return {text_.data() + begin, ends_[index] - begin};
  }
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size()}; }
  [[nodiscard]] bool Has(std::string_view name) const;

  friend bool operator==(const Children&, const Children&) = default;

 private:
  std::string text_;                 // all names, concatenated
  std::vector<std::uint32_t> ends_;  // where each name ends in text_; 31 bits suffice for a packet
};

}  // namespace zklock::protocol
