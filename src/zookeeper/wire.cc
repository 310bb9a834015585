#include "zookeeper/wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zklock::zookeeper {
namespace {

constexpr std::int32_t kCloseSession = -11;
constexpr std::int32_t kErrorResult = -1;
// How much of a frame is read: its length and xid; for the close's reply; for a multi's.
constexpr std::size_t kShortHead = 8;
constexpr std::size_t kCloseHead = 20;
constexpr std::size_t kMultiHead = 24;

void Put32(std::byte* to, std::int32_t value) {
  const auto bits = static_cast<std::uint32_t>(value);
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>((bits >> (24 - 8 * i)) & 0xffU);
}

std::int32_t Get32(const std::byte* from) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits = (bits << 8U) | std::to_integer<std::uint32_t>(from[i]);
  return static_cast<std::int32_t>(bits);
}

}  // namespace

CloseRequest MakeCloseRequest(std::int32_t xid) {
  CloseRequest request{};
  Put32(request.data(), 8);
  Put32(request.data() + 4, xid);
  Put32(request.data() + 8, kCloseSession);
  return request;
}

Greeting JudgeGreeting(const std::byte* data, std::size_t size) {
  if (size < kGreetingSize) return Greeting::kTooShort;
  // protocolVersion 4, timeOut 4, sessionId 8, password 4 + 16, and since 3.4 readOnly 1.
  const std::int32_t length = Get32(data);
  const std::int32_t version = Get32(data + 4);
  return (length == 36 || length == 37) && version == 0 ? Greeting::kZooKeeper : Greeting::kForeign;
}

bool FrameLengths::Feed(const std::byte* data, std::size_t size) {
  while (is_sound_ && size > 0) {
    if (length_bytes_ < sizeof length_) {
      length_ = length_ << 8U | std::to_integer<std::uint32_t>(*data);
      ++data;
      --size;
      if (++length_bytes_ < sizeof length_) continue;
      is_sound_ = length_ <= kLongest;
      left_ = length_;
    }
    const std::size_t taken = std::min(size, left_);
    data += taken;
    size -= taken;
    left_ -= taken;
    if (left_ == 0) {
      length_ = 0;
      length_bytes_ = 0;
    }
  }
  return is_sound_;
}

ReplyScanner::ReplyScanner(std::int32_t close, std::vector<bool> asked)
    : close_(close),
      asked_(std::move(asked)),
      unreleased_(static_cast<std::size_t>(std::count(asked_.begin(), asked_.end(), true))),
      head_wanted_(kShortHead) {}

void ReplyScanner::JudgeHead() {
  // A frame has at least its xid. A shorter one is not ZooKeeper's, and means nothing.
  const std::int32_t length = std::max(Get32(head_.data()), 4);
  const std::int32_t xid = Get32(head_.data() + 4);
  const bool multi = head_size_ == kMultiHead;
  if (multi) {
    const bool done = Get32(head_.data() + 16) == 0 && Get32(head_.data() + 20) != kErrorResult;
    refused_ = refused_ || !done;
    --unreleased_;
    seen_ = unreleased_ == 0 && !refused_;
  } else if (xid == close_) {
    const bool has_error = static_cast<std::size_t>(length) + 4 >= kCloseHead;
    if (has_error && head_size_ < kCloseHead) {
      head_wanted_ = kCloseHead;
      return;
    }
    close_refused_ = has_error && Get32(head_.data() + 16) != 0;
    seen_ = !close_refused_;
  } else if (xid >= 0 && answered_ < asked_.size() && asked_[answered_++]) {
    if (static_cast<std::size_t>(length) + 4 >= kMultiHead) {
      head_wanted_ = kMultiHead;
      return;
    }
    refused_ = true;  // a reply with an error alone has no results
  }
  skip_ = static_cast<std::size_t>(length) + 4 - head_size_;
  head_size_ = 0;
  head_wanted_ = kShortHead;
}

bool ReplyScanner::Feed(const std::byte* data, std::size_t size) {
  while (size > 0 && !seen_) {
    if (skip_ > 0) {
      const std::size_t step = std::min(skip_, size);
      data += step;
      size -= step;
      skip_ -= step;
      continue;
    }
    const std::size_t step = std::min(head_wanted_ - head_size_, size);
    std::memcpy(head_.data() + head_size_, data, step);
    head_size_ += step;
    data += step;
    size -= step;
    if (head_size_ == head_wanted_) JudgeHead();
  }
  return seen_;
}

}  // namespace zklock::zookeeper
