#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "base/unique_fd.h"

namespace zklock::transport {

/// Why there is no connection. `what()` is the reason that zklock shows after the server's name.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& what, bool is_refusal = false)
      : std::runtime_error(what), refusal(is_refusal) {}
  bool refusal;  ///< the credentials were rejected: no other server is tried, unless a lock is held
};

/// A byte stream to a server over a non-blocking socket.
class Channel {
 public:
  enum class State {
    kDone,
    kWantsRead,   ///< call again when the socket is readable
    kWantsWrite,  ///< call again when it is writable
    kEnd,         ///< the server has closed the connection
  };
  struct Result {
    State state = State::kDone;
    std::size_t size = 0;  ///< the number of bytes read or written; positive with kDone
  };
  virtual ~Channel() = default;
  /// Read() and Write() throw Failure.
  [[nodiscard]] virtual Result Read(std::span<char> buffer) = 0;
  [[nodiscard]] virtual Result Write(std::span<const char> data) = 0;
  /// Tells the server that no more data will follow. Does not wait.
  virtual void Close() = 0;
  [[nodiscard]] virtual int fd() const = 0;
};

/// Plain TCP.
class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(UniqueFd socket) : socket_(std::move(socket)) {}
  Result Read(std::span<char> buffer) override;
  Result Write(std::span<const char> data) override;
  void Close() override {}
  [[nodiscard]] int fd() const override { return socket_.get(); }

 private:
  UniqueFd socket_;
};

/// Writes `text` (what this process is waiting for, or why it ends) to standard error; zklock
/// reports the last line there if it gives up on this server. Discards earlier lines, which are
/// about a finished step.
void Report(std::string text);
/// Discards the last line, because its step is finished.
void DiscardReport();

/// The connection to zklock. Standard input and output are the same socket.
inline constexpr int kZklock = 0;

/// Waits until `fd` is ready for `events`. Ends this process if zklock has closed the connection.
void WaitFor(int fd, short events);
/// Waits for the readiness that `state` names; returns at once if it names none.
void WaitFor(const Channel& channel, Channel::State state);

/// Connects to a numeric "ADDRESS:PORT". Sets no time limit: zklock does. Throws Failure.
[[nodiscard]] UniqueFd ConnectTo(const std::string& address);

/// Writes all of `data`. Throws Failure.
void WriteAll(Channel& channel, std::span<const char> data);
/// Writes all of `data`. Ends this process if zklock has closed the connection.
void WriteAllToZklock(std::span<const char> data);

/// Relays bytes in both directions until either side closes.
void Relay(Channel& channel);

}  // namespace zklock::transport
