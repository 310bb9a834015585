/* A library to preload. While the FIFO $ZKLOCK_TEST_FORKS exists, fork() fails and writes a byte to
   it. While the FIFO $ZKLOCK_TEST_FORKS.held, which has no writer, exists, a guard blocks before it
   forks its command. While $ZKLOCK_TEST_FORKS.stopped exists, a command is stopped at its fork. The
   same applies to clone3, which forks a command into its cgroup. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Before it forks, a guard has requested CONT as its parent-death signal. */
static int IsGuard(void) {
  int signal_number = 0;
  return prctl(PR_GET_PDEATHSIG, &signal_number) == 0 && signal_number == SIGCONT;
}

/* Sets `path` to $ZKLOCK_TEST_FORKS.`suffix`. Returns whether that exists and this process is a
   guard. */
static int MustAct(const char* suffix, char path[4096]) {
  const char* fifo = getenv("ZKLOCK_TEST_FORKS");
  if (fifo == NULL || !IsGuard()) return 0;
  snprintf(path, 4096, "%s.%s", fifo, suffix);
  return access(path, F_OK) == 0;
}

static void WaitIfHeld(void) {
  char held[4096];
  const int opened = MustAct("held", held) ? open(held, O_RDONLY | O_CLOEXEC) : -1;
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
  WaitIfHeld();
  return 1;
}

pid_t fork(void) {
  if (!IsAllowed()) return -1;
  char path[4096];
  const int stops = MustAct("stopped", path);
  pid_t (*real)(void);
  *(void**)&real = dlsym(RTLD_NEXT, "fork");
  const pid_t pid = real();
  if (pid == 0 && stops) kill(getpid(), SIGSTOP);
  return pid;
}

long syscall(long number, ...) {
  if (number == SYS_clone3 && !IsAllowed()) return -1;
  char path[4096];
  const int stops = number == SYS_clone3 && MustAct("stopped", path);
  long argument[6];
  va_list arguments;
  va_start(arguments, number);
  for (int i = 0; i < 6; ++i) argument[i] = va_arg(arguments, long);
  va_end(arguments);
  long (*real)(long, ...);
  *(void**)&real = dlsym(RTLD_NEXT, "syscall");
  const long result =
      real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
  if (result == 0 && stops) kill(getpid(), SIGSTOP);
  return result;
}
