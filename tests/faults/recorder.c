/* The command that the fault suite runs under zklock. It records when it was alive in a file that
 * the driver created, through a shared mapping, so that the record survives however it ends:
 *
 *   recorder FILE MILLISECONDS [tree] [daemon] [leave] [stubborn] [slow] [status=N]
 *            [bomb] [lasting] [foreign=PROGRAM] [hidden=PROGRAM]
 *
 * It stamps CLOCK_BOOTTIME into FILE every 4 ms. The first stamp is later than its start and the
 * last earlier than its end, so two commands with overlapping stamps did run at the same time.
 *
 * tree: a child that ignores stop signals. daemon: a grandchild in a session of its own. Both leave
 * stamps too. leave: ends before them (they end 200 ms later) instead of after them.
 * stubborn: ignores TERM. slow: takes 150 ms to end on TERM. (histories.py reads the file.)
 *
 * Processes that are hard to end, one kind at a time, which share the last slot and live on when
 * the main process is killed. bomb: some that are constantly replaced by their children. lasting:
 * one that has become a daemon by forking twice. foreign: one of root, PROGRAM being this program
 * with its setuid bit. hidden: one of the same user, behind two of root.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kSlots = 4, kLastSlot = 3, kSize = 4096, kTextSize = 3072, kTerminated = 40 };
enum { kBombs = 4, kGenerations = 4000 };

struct Slot {
  int64_t pid;
  int64_t begin;
  int64_t last;
  int64_t ended;  /* by itself */
  int64_t status; /* with which it then exits */
};

struct Record {
  volatile int64_t hold_until; /* written by the driver: do not end before this time */
  volatile int64_t finish;     /* the other processes end at this time */
  struct Slot slots[kSlots];
  char text[kTextSize];
};

static struct Record* record;
static volatile sig_atomic_t terminated;

static void OnTerm(int number) {
  (void)number;
  terminated = 1;
}

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static volatile struct Slot* Enter(int index) {
  volatile struct Slot* slot = &record->slots[index];
  slot->pid = getpid();
  slot->last = slot->begin = Now();
  return slot;
}

static void Pause(void) {
  const struct timespec span = {0, 4000000};
  nanosleep(&span, NULL);
}

/* A process other than the main one. If `main_pid` is 0, it survives the death of the main one. */
static void LiveBeside(int index, pid_t main_pid) {
  volatile struct Slot* slot = Enter(index);
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  for (;;) {
    const int64_t now = Now();
    slot->last = now;
    if (record->finish != 0 && now >= record->finish) break;
    /* The main process was killed from outside and zklock leaves this one alone. */
    if (record->finish == 0 && main_pid != 0 && kill(main_pid, 0) < 0 && errno == ESRCH) break;
    Pause();
  }
  slot->ended = Now();
  _exit(0);
}

/* Replaces itself by a child, again and again, until the end. The number is bounded so that
 * processes that nobody reaps cannot use up the PIDs of the machine. */
static void LiveAsBomb(int index) {
  volatile struct Slot* slot = Enter(index);
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  for (int generation = 0; generation < kGenerations; ++generation) {
    const int64_t now = Now();
    slot->last = now;
    if (record->finish != 0 && now >= record->finish) break;
    const struct timespec span = {0, 2000000};
    nanosleep(&span, NULL);
    if (fork() > 0) _exit(0);
  }
  slot->ended = Now();
  _exit(0);
}

/* `recorder FILE 0 foreign|hidden`, executed from a set-user-ID file. */
static int LiveAsForeigner(int is_hidden) {
  const uid_t user = getuid();
  if (setresuid(0, 0, 0) != 0) return 99;
  if (is_hidden) {
    /* One more process of root between those of the two users. */
    const pid_t child = fork();
    if (child == 0) {
      if (fork() == 0) {
        if (setresuid(user, user, user) != 0) _exit(99);
        LiveBeside(kLastSlot, 0);
      }
    }
    while (record->finish == 0) Pause();
    _exit(0);
  }
  LiveBeside(kLastSlot, 0);
  return 0;
}

static void StartDaemon(int index, pid_t main_pid) {
  if (fork() != 0) return;
  setsid();
  if (fork() == 0) LiveBeside(index, main_pid);
  _exit(0);
}

static const char* Variable(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? value : "";
}

int main(int argc, char** argv) {
  int tree = 0;
  int daemon_too = 0;
  int leave = 0;
  int stubborn = 0;
  int slow = 0;
  int status = 0;
  int bomb = 0;
  int lasting = 0;
  const char* foreign = NULL; /* PROGRAM */
  const char* hidden = NULL;  /* PROGRAM */
  if (argc < 3) return 99;
  const int fd = open(argv[1], O_RDWR | O_CLOEXEC);
  record = fd < 0 ? MAP_FAILED : mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (record == MAP_FAILED) return 99;
  if (argc == 4 && strcmp(argv[3], "foreign") == 0) return LiveAsForeigner(0);
  if (argc == 4 && strcmp(argv[3], "hidden") == 0) return LiveAsForeigner(1);
  const int64_t span = atoll(argv[2]) * 1000000;
  for (int i = 3; i < argc; ++i) {
    tree |= strcmp(argv[i], "tree") == 0;
    daemon_too |= strcmp(argv[i], "daemon") == 0;
    leave |= strcmp(argv[i], "leave") == 0;
    stubborn |= strcmp(argv[i], "stubborn") == 0;
    slow |= strcmp(argv[i], "slow") == 0;
    if (strncmp(argv[i], "status=", 7) == 0) status = atoi(argv[i] + 7);
    bomb |= strcmp(argv[i], "bomb") == 0;
    lasting |= strcmp(argv[i], "lasting") == 0;
    if (strncmp(argv[i], "foreign=", 8) == 0) foreign = argv[i] + 8;
    if (strncmp(argv[i], "hidden=", 7) == 0) hidden = argv[i] + 7;
  }

  snprintf(record->text, kTextSize, "%s\n%s\n%s\n%s\n", Variable("ZKLOCK_LOCK"),
           Variable("ZKLOCK_MODE"), Variable("ZKLOCK_TOKEN"), Variable("ZKLOCK_NODE"));
  volatile struct Slot* slot = Enter(0);
  struct sigaction action = {.sa_handler = stubborn ? SIG_IGN : OnTerm};
  sigaction(SIGTERM, &action, NULL);

  const pid_t main_pid = getpid();
  if (tree) {
    if (fork() == 0) LiveBeside(1, main_pid);
  }
  if (daemon_too) StartDaemon(2, main_pid);
  if (lasting) StartDaemon(kLastSlot, 0);
  for (int i = 0; bomb && i < kBombs; ++i) {
    if (fork() == 0) LiveAsBomb(kLastSlot);
  }
  if ((foreign || hidden) && fork() == 0) {
    execl(foreign ? foreign : hidden, "recorder", argv[1], "0", foreign ? "foreign" : "hidden",
          (char*)NULL);
    _exit(99);
  }

  const int is_hard = bomb || lasting || foreign || hidden;
  int64_t terminated_at = 0;
  for (;;) {
    const int64_t now = Now();
    slot->last = now;
    if (terminated && terminated_at == 0) terminated_at = now;
    if (terminated_at != 0) {
      status = kTerminated;
      if (!slow || now >= terminated_at + 150000000) break;
    } else if (now >= slot->begin + span && now >= record->hold_until) {
      break;
    }
    Pause();
  }
  /* If the main process was told to end, zklock has to end the others that are hard to end. */
  if (terminated_at == 0 || !is_hard) record->finish = Now() + (leave ? 200000000 : 0);
  if (!leave) {
    for (int i = 1; i <= 2; ++i) {
      const int there = i == 1 ? tree : daemon_too;
      while (there && record->slots[i].ended == 0) {
        slot->last = Now();
        Pause();
      }
    }
  }
  slot->status = status;
  slot->last = slot->ended = Now();
  _exit(status);
}
