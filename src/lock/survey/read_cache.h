#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include "zookeeper/store.h"

namespace zklock::lock {

/// Replies to reads with a watch, kept until the watch fires: nothing is read twice while it has
/// not changed.
class ReadCache {
 public:
  /// Null: it must be read.
  [[nodiscard]] const zookeeper::GetReply* FindData(const std::string& path) const {
    return Find(data_, path);
  }
  [[nodiscard]] const zookeeper::ListReply* FindChildren(const std::string& path) const {
    return Find(children_, path);
  }
  void Keep(const std::string& path, zookeeper::GetReply reply) { data_[path] = std::move(reply); }
  void Keep(const std::string& path, zookeeper::ListReply reply) {
    children_[path] = std::move(reply);
  }

  /// A watch on `path` fired. It may be the one on the data or on the children: both are read
  /// again.
  void Forget(const std::string& path) {
    data_.erase(path);
    children_.erase(path);
  }
  /// The connection was lost, and all watches with it.
  void Clear() {
    data_.clear();
    children_.clear();
  }

 private:
  template <typename Reply>
  using Replies = std::unordered_map<std::string, Reply>;

  template <typename Reply>
  [[nodiscard]] static const Reply* Find(const Replies<Reply>& replies, const std::string& path) {
    const auto found = replies.find(path);
    return found == replies.end() ? nullptr : &found->second;
  }

  Replies<zookeeper::GetReply> data_;
  Replies<zookeeper::ListReply> children_;
};

}  // namespace zklock::lock
