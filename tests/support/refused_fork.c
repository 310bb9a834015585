/* To be preloaded. While the FIFO $ZKLOCK_TEST_FORKS exists, fork() fails and writes a byte to it.
   While the FIFO $ZKLOCK_TEST_FORKS.held exists, which has no writer, a guard blocks before it
   forks its command. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

static void WaitIfHeld(const char* fifo) {
  char held[4096];
  char name[16] = "";
  snprintf(held, sizeof held, "%s.held", fifo);
  prctl(PR_GET_NAME, name);
  if (strcmp(name, "lock-guard") != 0) return;
  const int opened = open(held, O_RDONLY | O_CLOEXEC);
  if (opened >= 0) close(opened);
}

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
  if (fifo != NULL) WaitIfHeld(fifo);
  pid_t (*real)(void);
  *(void**)&real = dlsym(RTLD_NEXT, "fork");
  return real();
}
