/* The command of a measured hand-over: appends the time of its run, CLOCK_MONOTONIC in nanoseconds,
 * as a line to FILE, and ends.
 *
 *   stamp FILE          at once
 *   stamp FILE FIFO     when FIFO has no writer any more
 */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const int file = open(argv[1], O_WRONLY | O_APPEND);
  if (file < 0) return 66;
  char line[64];
  if (argc > 2) {
    const int held = open(argv[2], O_RDONLY);
    while (read(held, line, sizeof line) > 0) {
    }
  }
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int size =
      snprintf(line, sizeof line, "%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
  return write(file, line, (size_t)size) == size ? 0 : 74;
}
