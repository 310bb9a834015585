/* The command that scripts/compare runs under each tool's lock. It reads a file, works for a while, and
 * writes the file back, as a job does that trusts its lock:
 *
 *   job DIRECTORY SLOT SEED TOKEN
 *
 * TOKEN names the environment variable with the tool's fencing token; - if it has none. DIRECTORY
 * contains, made by the driver:
 *
 * records: a mapped array. Each command takes the next element, numbers itself by it, and stamps
 *   CLOCK_BOOTTIME into it every 4 ms. The record survives however the command ends. The first stamp
 *   is later than its start and the last earlier than its end, so two commands with overlapping
 *   stamps did run at the same time.
 * data: the file under the lock, nothing else protects it. It contains the number of the last command
 *   that wrote it; each record says which number its command had read.
 * store: the same with fencing: a command presents its token to read and to write, and is refused if
 *   a higher one has been seen. flock(2) makes each access atomic.
 *
 * updates.py reads the records. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kShortest = 20, kVariation = 60 }; /* milliseconds of work */
enum { kNone = 0, kAccepted = 1, kRefused = 2 };

struct Record {
  int64_t slot;
  int64_t pid;
  int64_t begin;
  int64_t last;
  int64_t ended; /* by itself */
  int64_t token;
  volatile int64_t hold_until; /* written by the driver: do not write before this time */
  int64_t read;
  int64_t writing; /* when it was about to write */
  int64_t wrote;
  int64_t store; /* kNone, kAccepted or kRefused */
  int64_t store_read;
  int64_t store_writing;
  int64_t store_wrote;
  int64_t unused[2];
};

struct Store {
  int64_t highest; /* token */
  int64_t number;  /* of the last command that wrote it */
};

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Opens a file of the driver's directory, the working directory. */
static int Open(const char* name) {
  const int fd = open(name, O_RDWR | O_CLOEXEC);
  if (fd < 0) _exit(99);
  return fd;
}

/* Reads or (`number` not 0) writes the number in the store. Returns it, or -1 if refused. */
static int64_t UseStore(int fd, int64_t token, int64_t number, struct Record* record) {
  struct Store store = {0, 0};
  while (flock(fd, LOCK_EX) != 0) {
  }
  if (pread(fd, &store, sizeof store, 0) != sizeof store) _exit(99);
  const int refused = token < store.highest;
  if (!refused) {
    store.highest = token;
    if (number != 0) store.number = number;
    if (number != 0) record->store_writing = Now();
    if (pwrite(fd, &store, sizeof store, 0) != sizeof store) _exit(99);
  }
  flock(fd, LOCK_UN);
  return refused ? -1 : store.number;
}

int main(int argc, char** argv) {
  if (argc != 5 || chdir(argv[1]) != 0) return 99;
  const int records = Open("records");
  const off_t size = lseek(records, 0, SEEK_END);
  struct Record* const all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, records, 0);
  if (all == MAP_FAILED) return 99;
  /* The first element counts the others. */
  const int64_t number = __atomic_add_fetch((int64_t*)all, 1, __ATOMIC_SEQ_CST);
  if ((off_t)((number + 1) * sizeof *all) > size) return 98;
  struct Record* const record = &all[number];
  const int data = Open("data");
  const int store = Open("store");

  const char* token = strcmp(argv[4], "-") == 0 ? NULL : getenv(argv[4]);
  if (token == NULL && strcmp(argv[4], "-") != 0) return 97;
  record->slot = atoll(argv[2]);
  record->pid = getpid();
  record->token = token != NULL ? atoll(token) : 0;
  record->last = record->begin = Now();

  if (pread(data, &record->read, sizeof record->read, 0) != sizeof record->read) return 99;
  if (token != NULL) {
    record->store_read = UseStore(store, record->token, 0, record);
    if (record->store_read < 0) record->store = kRefused;
  }
  const uint64_t drawn = ((uint64_t)number + strtoull(argv[3], NULL, 10)) * 0x9e3779b97f4a7c15U;
  const int64_t span = (kShortest + (int64_t)((drawn >> 32) % kVariation)) * 1000000;
  for (;;) {
    const int64_t now = Now();
    record->last = now;
    if (now >= record->begin + span && now >= record->hold_until) break;
    const struct timespec pause = {0, 4000000};
    nanosleep(&pause, NULL);
  }

  record->writing = Now();
  if (pwrite(data, &number, sizeof number, 0) != sizeof number) return 99;
  record->wrote = Now();
  if (token != NULL && record->store != kRefused) {
    const int accepted = UseStore(store, record->token, number, record) >= 0;
    record->store = accepted ? kAccepted : kRefused;
    if (accepted) record->store_wrote = Now();
  }
  record->last = record->ended = Now();
  return 0;
}
