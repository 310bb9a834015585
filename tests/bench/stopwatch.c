/* Runs commands alternately and prints how long each took. (The time that Python takes to start a
 * process would be a large part of the result.)
 *
 *   stopwatch ROUNDS ::: COMMAND [ARG...] [::: COMMAND [ARG...]]...
 *
 * Prints a line for each run: the command's index, nanoseconds, nanoseconds of CPU time (its own
 * and that of its children), exit status. The first round warms up and is not printed. Each round
 * starts with another command. Standard output of the commands is dropped.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { kMost = 64 };

extern char** environ;

static long long Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

static long long Nanoseconds(struct timeval span) {
  return (long long)span.tv_sec * 1000000000 + (long long)span.tv_usec * 1000;
}

static void RunOnce(int index, char** command, int told) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t pid;
  const long long began = Now();
  const int error = posix_spawnp(&pid, command[0], &actions, NULL, command, environ);
  if (error != 0) {
    fprintf(stderr, "stopwatch: %s: %s\n", command[0], strerror(error));
    exit(70);
  }
  int status = 0;
  struct rusage usage;
  wait4(pid, &status, 0, &usage);
  const long long took = Now() - began;
  posix_spawn_file_actions_destroy(&actions);
  if (told) {
    printf("%d %lld %lld %d\n", index, took,
           Nanoseconds(usage.ru_utime) + Nanoseconds(usage.ru_stime),
           WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
}

int main(int argc, char** argv) {
  char** commands[kMost];
  int count = 0;
  const int rounds = argc > 1 ? atoi(argv[1]) : 0;
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], ":::") != 0) continue;
    argv[i] = NULL;
    if (count < kMost && i + 1 < argc) commands[count++] = argv + i + 1;
  }
  if (rounds < 1 || count == 0) {
    fputs("usage: stopwatch ROUNDS ::: COMMAND [ARG...] [::: COMMAND [ARG...]]...\n", stderr);
    return 64;
  }
  for (int round = 0; round <= rounds; ++round) {
    for (int i = 0; i < count; ++i) {
      const int index = (round + i) % count;
      RunOnce(index, commands[index], round > 0);
    }
  }
  return 0;
}
