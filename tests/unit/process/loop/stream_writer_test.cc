#include "process/loop/stream_writer.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "process/loop/signals.h"
#include "process/loop/system_error.h"
#include "support/stalled_pipe.h"
#include "support/temporary.h"

namespace zklock::process {
namespace {

using test::StalledPipe;

constexpr Duration kPatience = std::chrono::milliseconds(1);

/// Returns everything that can be read now.
std::string ReadAll(int fd) {
  Check(fcntl(fd, F_SETFL, O_NONBLOCK), "fcntl");
  std::string text;
  char buffer[4096];
  for (ssize_t size; (size = read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(size));
  }
  return text;
}

TEST_CASE("text waits for a reader that is stalled, and is then written") {
  const StalledPipe pipe;
  StreamWriter writer(pipe.write.get());
  CHECK(writer.WriteLine("one"));
  CHECK(writer.Write("two"));
  CHECK(writer.waiting() == 7);
  CHECK(writer.GetInterest().fd >= 0);
  ReadAll(pipe.read.get());
  writer.OnReady(0);
  CHECK(writer.waiting() == 0);
  CHECK(ReadAll(pipe.read.get()) == "one\ntwo");
  CHECK(writer.GetInterest().fd < 0);
}

TEST_CASE("text is written in pieces of 4 KiB at most, unless there is one writer only") {
  // On a SOCK_SEQPACKET socket, each write is one record.
  int ends[2];
  Check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "socketpair");
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  const auto records = [&](StreamWriter::Writers writers) {
    StreamWriter writer(write_end.get(), writers);
    CHECK(writer.Write(std::string(3000, 'x') + "\n" + std::string(3000, 'y') + "\n"));
    std::vector<ssize_t> sizes;
    char buffer[10'000];
    for (ssize_t size; (size = recv(read_end.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
      sizes.push_back(size);
    }
    return sizes;
  };
  CHECK(records(StreamWriter::Writers::kSeveral) == std::vector<ssize_t>{3001, 3001});
  CHECK(records(StreamWriter::Writers::kOne) == std::vector<ssize_t>{6002});
}

TEST_CASE("a line that finds no room is dropped whole, but appended text is not") {
  const StalledPipe pipe;
  StreamWriter writer(pipe.write.get());
  const std::string line(40'000, 'x');
  CHECK(writer.WriteLine(line));
  CHECK_FALSE(writer.WriteLine(line));
  CHECK(writer.waiting() == line.size() + 1);
  writer.Append(line);
  CHECK(writer.waiting() == 2 * line.size() + 1);
  writer.Discard();
  CHECK(writer.waiting() == 0);
  CHECK(writer.WriteLine(line));
}

TEST_CASE("the mode of a shared pipe is left alone: the writer opens its own description") {
  const StalledPipe pipe;
  StreamWriter writer(pipe.write.get());
  CHECK((fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK) == 0);
  CHECK(writer.WriteLine("one"));
  CHECK((fcntl(writer.GetInterest().fd, F_GETFL) & O_NONBLOCK) != 0);
}

TEST_CASE("a stalled pipe does not block a writer that could not open it again") {
  const StalledPipe pipe;
  // The pipe has no permissions for its owner; root also gives up its access to all files. A limit
  // on open files cannot be used: the sanitizers open a pipe themselves.
  Check(fchmod(pipe.write.get(), 0), "fchmod");
  const auto before = static_cast<uid_t>(setfsuid(65534));
  StreamWriter writer(pipe.write.get());
  setfsuid(before);
  CHECK(writer.WriteLine("one"));
  CHECK(writer.waiting() == 4);
  CHECK(writer.GetInterest().fd == pipe.write.get());
  ReadAll(pipe.read.get());
  writer.OnReady(0);
  CHECK(ReadAll(pipe.read.get()) == "one\n");
}

TEST_CASE("a socket that is not read does not block its writer") {
  int ends[2];
  Check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  StreamWriter writer(write_end.get());
  const std::string text(10'000, 'x');
  std::size_t written = 0;
  for (; writer.waiting() == 0; written += text.size()) CHECK(writer.Write(text));
  CHECK(ReadAll(read_end.get()).size() + writer.waiting() == written);
}

TEST_CASE("a drain ends when the reader takes nothing") {
  const StalledPipe pipe;
  StreamWriter writer(pipe.write.get());
  CHECK(writer.WriteLine("one"));
  writer.Drain(kPatience);
  CHECK(writer.waiting() == 4);
}

TEST_CASE("a regular file is written at its current offset") {
  const test::TemporaryDirectory at;
  const std::string path = at.Write("file", "before\n");
  const UniqueFd file(Check(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC), "open"));
  StreamWriter writer(file.get());
  std::string lines;
  for (int i = 0; i < 5000; ++i) lines += std::to_string(i) + '\n';
  writer.Append(lines);
  writer.OnReady(0);
  CHECK(at.Read("file") == "before\n" + lines);
}

TEST_CASE("text that follows a failed write is dropped") {
  const Signals signals;  // blocks PIPE
  StalledPipe pipe;
  StreamWriter writer(pipe.write.get());
  pipe.read.Reset();
  CHECK(writer.error() == 0);
  CHECK(writer.WriteLine("one"));
  CHECK(writer.error() == EPIPE);
  CHECK(writer.WriteLine("two"));
  writer.Append("three");
  CHECK(writer.waiting() == 0);
}

TEST_CASE("a descriptor that is closed or read-only takes nothing") {
  const UniqueFd null(Check(open("/dev/null", O_RDONLY | O_CLOEXEC), "open"));
  for (const int fd : {-1, null.get()}) {
    StreamWriter writer(fd);
    CHECK(writer.error() == EBADF);
    CHECK(writer.WriteLine("one"));
    CHECK(writer.waiting() == 0);
  }
}

}  // namespace
}  // namespace zklock::process
