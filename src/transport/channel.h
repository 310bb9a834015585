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
  bool refusal;  ///< the server rejected the credentials: zklock does not try others
};

/// A byte stream to a server, on a socket that does not block.
class Channel {
 public:
  enum class State {
    kDone,
    kWantsRead,   ///< to be called again when the socket is readable
    kWantsWrite,  ///< to be called again when it is writable
    kEnd,         ///< the server has closed
  };
  struct Result {
    State state = State::kDone;
    std::size_t size = 0;  ///< the bytes read or written, more than 0 with kDone
  };
  virtual ~Channel() = default;
  /// Throw Failure.
  [[nodiscard]] virtual Result Read(std::span<char> buffer) = 0;
  [[nodiscard]] virtual Result Write(std::span<const char> data) = 0;
  /// Tells the server that nothing follows. Does not wait.
  virtual void Close() = 0;
  [[nodiscard]] virtual int fd() const = 0;
};

/// TCP as it is.
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

/// Standard error's last line is what zklock reports if it has to give this server up: what this
/// process is waiting for, or why it ends. Discards the lines before it: the step that they are
/// about is done.
void Report(std::string text);
/// Discards it: the step is done.
void DiscardReport();

/// zklock's end of the connection: standard input and output, one socket.
inline constexpr int kZklock = 0;

/// Waits until `fd` is ready for `events`. Ends this process if zklock has closed the connection.
void WaitFor(int fd, short events);
/// For the states in which a channel wants something.
void WaitFor(const Channel& channel, Channel::State state);

/// A connection to a numeric "ADDRESS:PORT", made as long as zklock waits for it. Throws Failure.
[[nodiscard]] UniqueFd ConnectTo(const std::string& address);

/// Writes all of it. Throws Failure.
void WriteAll(Channel& channel, std::span<const char> data);
void WriteAllToZklock(std::span<const char> data);

/// Passes bytes on in both directions until one side closes.
void Relay(Channel& channel);

}  // namespace zklock::transport
