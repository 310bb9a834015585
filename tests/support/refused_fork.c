/* Preloaded: no process can be forked while $ZKLOCK_TEST_FORKS is there, a fifo that gets a byte for
   each one that was refused. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

pid_t fork(void) {
  const char* fifo = getenv("ZKLOCK_TEST_FORKS");
  const int refused = fifo != NULL ? open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  if (refused >= 0) {
    const ssize_t written = write(refused, "f", 1);
    (void)written;
    close(refused);
    errno = EAGAIN;
    return -1;
  }
  pid_t (*real)(void);
  *(void**)&real = dlsym(RTLD_NEXT, "fork");
  return real();
}
