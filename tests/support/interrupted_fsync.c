/* A library to preload. If $ZKLOCK_TEST_FSYNC is TERM, fsync() sends TERM to the process; if it is
   ENOSPC, fsync() fails as on a full disk. */

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
