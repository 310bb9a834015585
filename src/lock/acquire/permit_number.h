#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lock/data/acquire_request.h"
#include "lock/data/outcome.h"
#include "protocol/queue.h"
#include "zookeeper/store.h"

namespace zklock::lock {

/// The number of permits of a semaphore, which zklock keeps in the data of LOCK's child `leases`.
///
/// Only one zklock at a time is past the turnstile without a permit, and it holds none until its
/// number is written. Any later zklock reads that number, and finds the permits of the runs that
/// wrote it. Permits of other programs prove nothing: Curator does not write the number.
class PermitNumber {
 public:
  /// The result of comparing our number with the written one.
  enum class Agreement {
    kAgreed,         ///< the written number is ours
    kUnread,         ///< the data must be read first
    kOtherNumber,    ///< others use another number
    kUnknownNumber,  ///< another zklock has a permit, but no number is written
    kOpen,           ///< nobody depends on a number: ours may be written
  };

  /// Both must outlive this. Not used for a request without permits.
  PermitNumber(zookeeper::Store& store, const AcquireRequest& request);

  /// `reply`: the data of `leases`.
  void Take(const zookeeper::GetReply& reply);
  void Forget() { data_.reset(); }

  /// Returns whether the data was read and, as far as we know, has not been written since.
  [[nodiscard]] bool is_known() const { return data_.has_value(); }
  /// Returns the written number; none if it is unknown or not a number.
  [[nodiscard]] std::optional<std::size_t> written() const;
  [[nodiscard]] Agreement Compare(const protocol::Contenders& permits,
                                  std::string_view own_name) const;
  /// Writes our number, unless the data has changed since it was read. Afterwards the number is
  /// unknown until it is read again.
  void Write(zookeeper::Done<zookeeper::Reply> done);

 private:
  struct Data {
    std::optional<std::size_t> number;  ///< none: the data is not a number
    std::int32_t version = 0;
  };

  zookeeper::Store& store_;
  const AcquireRequest& request_;
  std::optional<Data> data_;
};

/// Returns why a contender that would have to wait for a permit is refused instead; none if it is
/// not. `reply`: the data of `leases`, read after the permits were listed. `holders`: how many of
/// the runs with these permits had left the turnstile. Only those show that the number is in use:
/// the first contender in the turnstile may have created its permit and may still be about to
/// replace the number.
[[nodiscard]] std::optional<Unusable> FindOtherNumber(const zookeeper::GetReply& reply,
                                                      std::size_t holders, std::size_t own_number);

}  // namespace zklock::lock
