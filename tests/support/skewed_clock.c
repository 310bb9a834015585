/* A library to preload: the time of day is $SKEW_SECONDS ahead, or as many seconds as the file
   $SKEW_FILE contains at the moment (eight bytes in this machine's byte order). Clocks that measure
   elapsed time (CLOCK_BOOTTIME and the like) are unchanged, as on a host whose clock is wrong.

   libfaketime is not used because it also takes over the timed waits of threads, which makes a
   server several times slower: three of them need minutes to elect a leader. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t* skew_in_file;

__attribute__((constructor)) static void map_file(void) {
  const char* path = getenv("SKEW_FILE");
  if (path == NULL) return;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  void* memory = mmap(NULL, sizeof *skew_in_file, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) abort();
  close(file);
  skew_in_file = memory;
}

static long skew(void) {
  if (skew_in_file != NULL) return __atomic_load_n(skew_in_file, __ATOMIC_RELAXED);
  const char* text = getenv("SKEW_SECONDS");
  return text != NULL ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += skew();
  }
  return result;
}

int gettimeofday(struct timeval* now, void* zone) {
  (void)zone;
  struct timespec time;
  const int result = clock_gettime(CLOCK_REALTIME, &time);
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1000;
  return result;
}

time_t time(time_t* result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) *result = now.tv_sec;
  return now.tv_sec;
}
