/* To be preloaded into a server: makes each fsync take 5 ms longer, as on a slow disk. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void Sleep(void) {
  const struct timespec span = {0, 5000000};
  nanosleep(&span, NULL);
}

int fsync(int fd) {
  Sleep();
  return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
  Sleep();
  return (int)syscall(SYS_fdatasync, fd);
}
