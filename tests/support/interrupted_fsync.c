/* A library to preload. In fsync(), the process gets a TERM (if $ZKLOCK_TEST_FSYNC is TERM), or the
   disk is full (if it is ENOSPC). */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fsync(int fd) {
  (void)fd;
  const char* what = getenv("ZKLOCK_TEST_FSYNC");
  if (what != NULL && strcmp(what, "TERM") == 0) return kill(getpid(), SIGTERM);
  errno = ENOSPC;
  return -1;
}
