/* The minimum cost of running a command under a lock with the ZooKeeper C client: one numeric
 * address, pipelined requests, delete and close in one write. It is a floor to measure against, not
 * a usable lock: it has no lease and no real guard, and does not look for lost replies.
 *
 *   floor [--guard] HOST:PORT LOCK COMMAND [ARG...]
 *
 * --guard: a separate process starts the command, waits for it and reports its end.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

enum { kPathSize = 512, kMilliseconds = 30000 };

static zhandle_t* handle;
static int socket_fd = -1;
static const char* lock;
static char own[kPathSize];
static char predecessor[kPathSize];
static int listed; /* in the latest list */
static int gone;   /* the predecessor is gone: list again */

static void Die(const char* what, int result) {
  fprintf(stderr, "floor: %s: %s\n", what, zerror(result));
  exit(70);
}

static void DropLog(const char* line) { (void)line; }

static void OnSession(zhandle_t* zh, int type, int state, const char* path, void* data) {
  (void)zh, (void)type, (void)state, (void)path, (void)data;
}

static void Step(void) {
  struct timeval left;
  int fd = -1, interest = 0;
  const int asked = zookeeper_interest(handle, &fd, &interest, &left);
  if (asked != ZOK) Die("no connection", asked);
  socket_fd = fd;
  struct pollfd ready = {fd,
                         (short)(((interest & ZOOKEEPER_READ) != 0 ? POLLIN : 0) |
                                 ((interest & ZOOKEEPER_WRITE) != 0 ? POLLOUT : 0)),
                         0};
  poll(&ready, 1, (int)(left.tv_sec * 1000 + left.tv_usec / 1000) + 1);
  const int events = ((ready.revents & POLLIN) != 0 ? ZOOKEEPER_READ : 0) |
                     ((ready.revents & POLLOUT) != 0 ? ZOOKEEPER_WRITE : 0);
  const int done = zookeeper_process(handle, events);
  if (done != ZOK && done != ZNOTHING) Die("the connection", done);
}

/* The library writes the length and the body of each request separately. */
static void Cork(int on) { setsockopt(socket_fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on); }

static const char* Number(const char* name) {
  const size_t length = strlen(name);
  return length < 10 ? "" : name + length - 10;
}

static void OnCreated(int result, const char* path, const void* data) {
  (void)data;
  if (result == ZOK) snprintf(own, sizeof own, "%s", path);
  if (result != ZOK && result != ZNONODE) Die("create", result);
}

static void OnListed(int result, const struct String_vector* names, const void* data) {
  (void)data;
  if (result != ZOK && result != ZNONODE) Die("list", result);
  listed = 1;
  const char* before = NULL;
  for (int i = 0; result == ZOK && i < names->count; ++i) {
    const char* name = names->data[i];
    if (strcmp(Number(name), Number(own)) < 0 &&
        (before == NULL || strcmp(Number(name), Number(before)) > 0)) {
      before = name;
    }
  }
  predecessor[0] = '\0';
  if (before != NULL) snprintf(predecessor, sizeof predecessor, "%s/%s", lock, before);
}

static void OnPredecessor(zhandle_t* zh, int type, int state, const char* path, void* data) {
  (void)zh, (void)state, (void)path, (void)data;
  if (type != ZOO_SESSION_EVENT) gone = 1;
}

static void OnGot(int result, const char* value, int size, const struct Stat* stat,
                  const void* data) {
  (void)value, (void)size, (void)stat, (void)data;
  if (result == ZNONODE) gone = 1;
}

static void OnMade(int result, const char* path, const void* data) {
  (void)path;
  if (result != ZOK && result != ZNODEEXISTS) Die("make the LOCK", result);
  *(int*)data = 1;
}

static void List(void) {
  listed = 0;
  zoo_aget_children(handle, lock, 0, OnListed, NULL);
}

static void Acquire(void) {
  char name[kPathSize];
  snprintf(name, sizeof name, "%s/floor-%d-lock-", lock, (int)getpid());
  for (;;) {
    Cork(1);
    zoo_acreate(handle, name, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, OnCreated,
                NULL);
    List();
    Cork(0);
    while (!listed) Step();
    if (own[0] != '\0') break;
    int made = 0;
    zoo_acreate(handle, lock, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, OnMade, &made);
    while (!made) Step();
  }
  while (predecessor[0] != '\0') {
    gone = 0;
    zoo_awget(handle, predecessor, OnPredecessor, NULL, OnGot, NULL);
    while (!gone) Step();
    List();
    while (!listed) Step();
  }
}

static char* PutInt(char* at, int value) {
  const uint32_t number = htonl((uint32_t)value);
  memcpy(at, &number, sizeof number);
  return at + sizeof number;
}

/* Writes delete and close in wire format and reads both replies: the library would send four
   packets, and not wait for the second reply. */
static void Release(void) {
  enum { kDelete = 2, kClose = -11, kReplies = 2 * (4 + 16) };
  const int length = (int)strlen(own);
  char request[kPathSize + 64];
  char* at = PutInt(request, 4 + 4 + 4 + length + 4);
  at = PutInt(PutInt(PutInt(at, 1), kDelete), length);
  memcpy(at, own, (size_t)length);
  at = PutInt(at + length, -1);
  at = PutInt(PutInt(PutInt(at, 8), 2), kClose);
  if (send(socket_fd, request, (size_t)(at - request), MSG_NOSIGNAL) != at - request) {
    Die("release", ZCONNECTIONLOSS);
  }
  char replies[kReplies];
  for (int left = kReplies; left > 0;) {
    struct pollfd ready = {socket_fd, POLLIN, 0};
    poll(&ready, 1, -1);
    const ssize_t size = recv(socket_fd, replies, (size_t)left, 0);
    if (size <= 0) Die("release", ZCONNECTIONLOSS);
    left -= (int)size;
  }
}

static int RunCommand(char** command) {
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    execvp(command[0], command);
    _exit(127);
  }
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int RunUnderGuard(char** command) {
  int status = 0;
  const pid_t guard = fork();
  if (guard == 0) _exit(RunCommand(command));
  waitpid(guard, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  int first = 1;
  const int guarded = argc > 1 && strcmp(argv[1], "--guard") == 0;
  first += guarded;
  if (argc < first + 3) {
    fputs("usage: floor [--guard] HOST:PORT LOCK COMMAND [ARG...]\n", stderr);
    return 64;
  }
  lock = argv[first + 1];
  zoo_set_debug_level((ZooLogLevel)0);
  handle = zookeeper_init2(argv[first], OnSession, kMilliseconds, NULL, NULL, ZOO_NO_LOG_CLIENTENV,
                           DropLog);
  if (handle == NULL) return 69;
  zoo_set_servers_resolution_delay(handle, -1);
  while (zoo_state(handle) != ZOO_CONNECTED_STATE) Step();
  Acquire();
  const int status = guarded ? RunUnderGuard(argv + first + 2) : RunCommand(argv + first + 2);
  Release();
  return status;
}
