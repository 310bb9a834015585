#include "process/transport/error_tail.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "process/transport/transport_spec.h"

namespace zklock::process {
namespace {

/// A pipe whose reading end is for an ErrorTail.
class Pipe {
 public:
  Pipe() {
    REQUIRE(pipe(ends_.data()) == 0);
    to_.Reset(ends_[1]);
  }
  [[nodiscard]] UniqueFd TakeReadingEnd() const { return UniqueFd(ends_[0]); }
  void Write(std::string_view text) const {
    REQUIRE(write(to_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void Close() { to_.Reset(); }
  [[nodiscard]] int writing_end() const { return to_.get(); }

 private:
  std::array<int, 2> ends_{};
  UniqueFd to_;
};

TEST_CASE("the last two lines of a process are kept, the last one even if it is incomplete") {
  Pipe pipe;
  ErrorTail words(pipe.TakeReadingEnd());
  CHECK(words.Read().empty());
  pipe.Write("one\n");
  CHECK(words.Read() == "one");
  pipe.Write("two\r\n\nthree\n");
  CHECK(words.Read() == "two; three");
  pipe.Write("fo");
  CHECK(words.Read() == "three; fo");
  pipe.Write("ur\n");
  pipe.Close();
  CHECK(words.Read() == "three; four");
  CHECK(words.Read() == "three; four");
  words.Forget();
  CHECK(words.Read().empty());
}

TEST_CASE("a form feed discards what a process has reported") {
  const Pipe pipe;
  ErrorTail words(pipe.TakeReadingEnd());
  pipe.Write("connecting\n\f\n");
  CHECK(words.Read().empty());
  pipe.Write("failed\n");
  CHECK(words.Read() == "failed");
}

TEST_CASE("the rest of a long line is dropped") {
  const Pipe pipe;
  ErrorTail words(pipe.TakeReadingEnd());
  pipe.Write(std::string(5000, 'x') + "\nend\n");
  CHECK(words.Read() == std::string(300, 'x') + "; end");
}

TEST_CASE("a read returns although the process writes without pause") {
  const Pipe pipe;
  constexpr int kSize = 1 << 19;
  REQUIRE(fcntl(pipe.writing_end(), F_SETPIPE_SZ, kSize) >= kSize);
  ErrorTail words(pipe.TakeReadingEnd());
  pipe.Write(std::string(kSize - 4, '\n') + "end\n");
  (void)words.Read();
  int unread = 0;
  REQUIRE(ioctl(pipe.writing_end(), FIONREAD, &unread) == 0);
  CHECK(unread > 0);
  for (int reads = 0; reads < 8; ++reads) (void)words.Read();
  CHECK(words.Read() == "end");
}

TEST_CASE("host and port replace their placeholders in a proxy command, and others are refused") {
  std::string line;
  CHECK(ExpandProxyCommand("ssh -W %h:%p 100%% bastion", "zk1", "2181", line));
  CHECK(line == "ssh -W zk1:2181 100% bastion");
  CHECK_FALSE(ExpandProxyCommand("nc %x", "zk1", "2181", line));
  CHECK_FALSE(ExpandProxyCommand("nc %", "zk1", "2181", line));
}

}  // namespace
}  // namespace zklock::process
