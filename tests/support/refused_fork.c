/* To be preloaded. While the FIFO $ZKLOCK_TEST_FORKS exists, fork() fails and writes a byte to it.
   While the FIFO $ZKLOCK_TEST_FORKS.held exists, which has no writer, a guard blocks before it
   forks its command. The same goes for clone3, by which a command is forked into its cgroup. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

static int IsAllowed(void) {
  const char* fifo = getenv("ZKLOCK_TEST_FORKS");
  const int refused = fifo != NULL ? open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  if (refused >= 0) {
    const ssize_t written = write(refused, "f", 1);
    (void)written;
    close(refused);
    errno = EAGAIN;
    return 0;
  }
  if (fifo != NULL) WaitIfHeld(fifo);
  return 1;
}

pid_t fork(void) {
  if (!IsAllowed()) return -1;
  pid_t (*real)(void);
  *(void**)&real = dlsym(RTLD_NEXT, "fork");
  return real();
}

long syscall(long number, ...) {
  if (number == SYS_clone3 && !IsAllowed()) return -1;
  long argument[6];
  va_list arguments;
  va_start(arguments, number);
  for (int i = 0; i < 6; ++i) argument[i] = va_arg(arguments, long);
  va_end(arguments);
  long (*real)(long, ...);
  *(void**)&real = dlsym(RTLD_NEXT, "syscall");
  return real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
