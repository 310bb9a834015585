#include "zookeeper/wire.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace zklock::zookeeper {
namespace {

constexpr std::int32_t kCloseSession = -11;
// In the reply to a failed transaction: the type of each result, and the error of operations that
// were not attempted.
constexpr std::int32_t kErrorResult = -1;
constexpr std::int32_t kNotTried = -2;
// The xids of frames that do not answer a numbered request. The last one answers a renewal of
// watches on a new connection, which zklock never lets the library make.
constexpr std::int32_t kWatchEvent = -1;
constexpr std::int32_t kPing = -2;
constexpr std::int32_t kCredentials = -4;
constexpr std::int32_t kWatchesRenewed = -8;

// xid: 4 bytes, zxid: 8, error: 4.
constexpr std::size_t kReplyHeader = 16;
constexpr std::size_t kStat = 68;
constexpr std::int32_t kPassword = 16;
// How much to read of a frame: of any frame (length and xid); of the reply to the close; of the
// reply to a multi.
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

bool IsReplyLength(std::uint32_t length) {
  return length >= kReplyHeader && length <= kLongestReply;
}

/// Reads the fields of a frame one by one, as the library does. After a field that does not fit
/// into the rest of the frame, no later field fits.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> frame) : rest_(frame) {}
  /// Returns whether all fields have fitted and nothing is left.
  [[nodiscard]] bool AreComplete() const { return fit_ && rest_.empty(); }

  std::span<const std::byte> Bytes(std::size_t size) {
    fit_ = fit_ && size <= rest_.size();
    if (!fit_) return {};
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::int32_t Int() {
    const auto bytes = Bytes(4);
    return fit_ ? Get32(bytes.data()) : 0;
  }
  bool Bool() {
    const auto bytes = Bytes(1);
    return fit_ && bytes[0] != std::byte{0};
  }
  /// Rejects a null character, at which the library would end the string.
  void String() {
    const auto text = Bytes(static_cast<std::size_t>(Int()));  // a negative length never fits
    fit_ = fit_ && std::find(text.begin(), text.end(), std::byte{0}) == text.end();
  }
  /// See ReplyCheck::Expect().
  void Take(char field) {
    std::int32_t count = 0;
    switch (field) {
      case 's':
        return String();
      case 'b':  // -1: null
        count = Int();
        if (count != -1) Bytes(static_cast<std::size_t>(count));
        return;
      case 'S':
        Bytes(kStat);
        return;
      case 'v':
        count = Int();
        fit_ = fit_ && count >= 0;
        for (; fit_ && count > 0; --count) String();
        return;
      case 'a':  // permissions, scheme and id of each entry
        count = Int();
        fit_ = fit_ && count >= 0;
        for (; fit_ && count > 0; --count) {
          Int();
          String();
          String();
        }
        return;
    }
  }
  /// Reads the results of a transaction, one for each operation, each after a header (type, end,
  /// error). If the transaction failed, all results are errors; if none of these named a reason,
  /// the library would report success.
  void TakeResults(std::string_view operations) {
    std::size_t errors = 0;
    bool has_reason = false;
    for (const char operation : operations) {
      const std::int32_t type = Int();
      fit_ = fit_ && !Bool();
      Int();
      if (type == kErrorResult) {
        ++errors;
        const std::int32_t error = Int();
        has_reason = has_reason || (error != 0 && error != kNotTried);
      } else {
        Take(operation);
      }
    }
    Int();
    fit_ = fit_ && Bool();
    Int();
    fit_ = fit_ && (errors == 0 || (errors == operations.size() && has_reason));
  }

 private:
  std::span<const std::byte> rest_;
  bool fit_ = true;
};

/// Checks the answer to a connect request. A read-only server would make the library block; only
/// servers before 3.4 do not report whether they are read-only. The library doubles the timeout,
/// which must not overflow.
bool IsSoundGreeting(std::span<const std::byte> frame, bool continues) {
  Fields fields(frame);
  const std::int32_t version = fields.Int();
  const std::int32_t timeout = fields.Int();
  const auto session = fields.Bytes(8);
  const std::int32_t password_size = fields.Int();
  fields.Bytes(kPassword);
  const bool knows_read_only = frame.size() > kGreetingSize + 8 + 4 + kPassword;
  const bool is_read_only = knows_read_only && fields.Bool();
  if (!fields.AreComplete() || version != 0 || password_size != kPassword || is_read_only) {
    return false;
  }
  const bool has_session = std::any_of(session.begin(), session.end(),
                                       [](std::byte byte) { return byte != std::byte{0}; });
  if (!has_session) return continues;  // the session has expired
  return timeout > 0 && timeout <= INT32_MAX / 2;
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

bool ReplyCheck::Feed(const std::byte* data, std::size_t size) {
  while (size > 0 && length_bytes_ < sizeof length_) {
    length_ = length_ << 8U | std::to_integer<std::uint32_t>(*data++);
    --size;
    if (++length_bytes_ == sizeof length_ && is_greeted_ && !IsReplyLength(length_)) return false;
  }
  if (size == 0) return true;
  if (arrived_ == 0) frame_ = data;
  if (data != frame_ + arrived_ || size > length_ - arrived_) return false;
  arrived_ += size;
  if (arrived_ < length_) return true;
  if (!IsSound({frame_, length_})) return false;
  length_ = 0;
  length_bytes_ = 0;
  arrived_ = 0;
  return true;
}

std::vector<std::byte> ReplyCheck::Incomplete() const {
  std::vector<std::byte> bytes;
  for (std::size_t i = length_bytes_; i > 0; --i) {
    bytes.push_back(static_cast<std::byte>(length_ >> 8U * (i - 1) & 0xffU));
  }
  if (arrived_ > 0) bytes.insert(bytes.end(), frame_, frame_ + arrived_);
  return bytes;
}

bool ReplyCheck::IsSound(std::span<const std::byte> frame) {
  if (!std::exchange(is_greeted_, true)) return IsSoundGreeting(frame, continues_);
  Fields fields(frame);
  const std::int32_t xid = fields.Int();
  fields.Bytes(8);
  const std::int32_t error = fields.Int();
  std::string expected;
  switch (xid) {
    case kPing:
    case kCredentials:
      break;
    case kWatchEvent:
      fields.Int();
      fields.Int();
      fields.String();
      return fields.AreComplete();
    case kWatchesRenewed:
      return false;
    default:
      if (expected_.empty()) return false;
      expected = std::move(expected_.front());
      expected_.pop_front();
  }
  if (error != 0) return true;  // the library reads no further
  const std::string_view letters = expected;
  if (letters.starts_with('m')) {
    fields.TakeResults(letters.substr(1));
  } else {
    for (const char field : letters) fields.Take(field);
  }
  return fields.AreComplete();
}

ReplyScanner::ReplyScanner(std::int32_t close, std::vector<bool> asked)
    : close_(close),
      asked_(std::move(asked)),
      unreleased_(static_cast<std::size_t>(std::count(asked_.begin(), asked_.end(), true))),
      head_wanted_(kShortHead) {}

void ReplyScanner::JudgeHead() {
  const auto length = static_cast<std::uint32_t>(Get32(head_.data()));
  const std::int32_t xid = Get32(head_.data() + 4);
  foreign_ = !IsReplyLength(length);
  if (foreign_) return;
  const bool multi = head_size_ == kMultiHead;
  if (multi) {
    const bool done = Get32(head_.data() + 16) == 0 && Get32(head_.data() + 20) != kErrorResult;
    refused_ = refused_ || !done;
    --unreleased_;
    seen_ = unreleased_ == 0 && !refused_;
  } else if (xid == close_) {
    if (head_size_ < kCloseHead) {
      head_wanted_ = kCloseHead;
      return;
    }
    close_refused_ = Get32(head_.data() + 16) != 0;
    seen_ = !close_refused_;
  } else if (xid >= 0 && answered_ < asked_.size() && asked_[answered_++]) {
    if (length + 4 >= kMultiHead) {
      head_wanted_ = kMultiHead;
      return;
    }
    refused_ = true;  // a reply with only an error has no results
  }
  skip_ = length + 4 - head_size_;
  head_size_ = 0;
  head_wanted_ = kShortHead;
}

bool ReplyScanner::Feed(const std::byte* data, std::size_t size) {
  while (size > 0 && !seen_ && !foreign_) {
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
