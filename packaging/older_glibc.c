// What the binaries use of the host's C library that is younger than glibc 2.31: defined here, by
// older symbols. Linked with -DZKLOCK_OLDER_GLIBC=ON (cmake/OlderGlibc.cmake), as scripts/package
// does, so that what is built on Debian 12 starts on older systems. All of it is hidden: nothing
// here is seen by the C library or by the libraries that it loads.
//
// A symbol of glibc 2.34, which took libpthread in, is often the same function as one of its first
// version, to which .symver refers.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#define SIGNALS_VERSION "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#define SIGNALS_VERSION "GLIBC_2.17"
#else
#error "The first versions of this processor's symbols in glibc are not known here"
#endif

#define OLDER(function, symbol, version) __asm__(".symver " #function ", " #symbol "@" version)

#pragma GCC visibility push(default)
extern int older_start_main(int (*run)(int, char**, char**), int argc, char** argv,
                            void (*initialize)(int, char**, char**), void (*finish)(void),
                            void (*finish_loader)(void), void* stack_end);
OLDER(older_start_main, __libc_start_main, FIRST_VERSION);

// Weak: before glibc 2.34 they are in libpthread, which the binaries do not name: opening it would
// cost each start on newer systems.
typedef void* ThreadBody(void*);
extern int older_create(pthread_t*, const pthread_attr_t*, ThreadBody*, void*)
    __attribute__((weak));
OLDER(older_create, pthread_create, FIRST_VERSION);
extern int older_join(pthread_t, void**) __attribute__((weak));
OLDER(older_join, pthread_join, FIRST_VERSION);
extern int older_once(pthread_once_t*, void (*)(void)) __attribute__((weak));
OLDER(older_once, pthread_once, FIRST_VERSION);
extern int older_key_create(pthread_key_t*, void (*)(void*)) __attribute__((weak));
OLDER(older_key_create, __pthread_key_create, FIRST_VERSION);

extern const char* const older_abbreviations[NSIG];
OLDER(older_abbreviations, sys_sigabbrev, SIGNALS_VERSION);
extern const char* const older_descriptions[NSIG];
OLDER(older_descriptions, _sys_siglist, SIGNALS_VERSION);
#pragma GCC visibility pop

#pragma GCC visibility push(hidden)
typedef void Constructor(int, char**, char**);
extern Constructor* __preinit_array_start[];
extern Constructor* __preinit_array_end[];
extern Constructor* __init_array_start[];
extern Constructor* __init_array_end[];
extern void _init(void);

// Up to glibc 2.33, this function was linked into each program; since 2.34, it is in the C library.
// A newer C library that is given one calls it instead of its own.
static void Initialize(int argc, char** argv, char** environment) {
  for (Constructor** each = __preinit_array_start; each != __preinit_array_end; ++each) {
    (*each)(argc, argv, environment);
  }
  _init();
  for (Constructor** each = __init_array_start; each != __init_array_end; ++each) {
    (*each)(argc, argv, environment);
  }
}

int __libc_start_main(int (*run)(int, char**, char**), int argc, char** argv,
                      void (*initialize)(void), void (*finish)(void), void (*finish_loader)(void),
                      void* stack_end) {
  (void)initialize;  // null, as is `finish`: the start-up code is that of glibc 2.34
  return older_start_main(run, argc, argv, Initialize, finish, finish_loader, stack_end);
}

struct Search {
  uintptr_t address;
  struct dl_find_object* found;
};

// For dl_iterate_phdr(3): ends the iteration at the object that has the address.
static int FindInObject(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct Search* search = data;
  uintptr_t start = UINTPTR_MAX, end = 0, frames = 0;
  int contains = 0;
  for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &object->dlpi_phdr[i];
    const uintptr_t first = object->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) frames = first;
    if (header->p_type != PT_LOAD) continue;
    const uintptr_t last = first + header->p_memsz;
    if (first < start) start = first;
    if (last > end) end = last;
    if (search->address >= first && search->address < last) contains = 1;
  }
  if (!contains) return 0;
  if (frames == 0) return -1;  // as glibc: no answer that the unwinder can use
  *search->found = (struct dl_find_object){
      .dlfo_map_start = (void*)start, .dlfo_map_end = (void*)end, .dlfo_eh_frame = (void*)frames};
  return 1;
}

// glibc 2.35, called by libgcc for each frame of an exception. The unwinder does not read
// dlfo_link_map.
int _dl_find_object(void* address, struct dl_find_object* result) {
  struct Search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(FindInObject, &search) == 1 ? 0 : -1;
}

// std::thread throws what an application has to expect of pthread_create(3) anyway.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, ThreadBody* body,
                   void* value) {
  return older_create == NULL ? EAGAIN : older_create(thread, attributes, body, value);
}

int pthread_join(pthread_t thread, void** result) {
  return older_join == NULL ? ESRCH : older_join(thread, result);
}

int pthread_once(pthread_once_t* control, void (*initialize)(void)) {
  if (older_once != NULL) return older_once(control, initialize);
  if (*control != PTHREAD_ONCE_INIT) return 0;
  *control = !PTHREAD_ONCE_INIT;
  initialize();  // there is one thread
  return 0;
}

// libgcc takes its presence for that of threads.
int __pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  return older_key_create == NULL ? EAGAIN : older_key_create(key, destroy);
}

// glibc 2.32. "No" is always right.
char __libc_single_threaded = 0;

// glibc 2.33 made functions of these.
static int Status(int directory, const char* path, struct stat* status, int flags) {
  return (int)syscall(SYS_newfstatat, directory, path, status, flags);
}
int stat(const char* path, struct stat* status) { return Status(AT_FDCWD, path, status, 0); }
int lstat(const char* path, struct stat* status) {
  return Status(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int fstat(int fd, struct stat* status) { return (int)syscall(SYS_fstat, fd, status); }
int fstat64(int fd, struct stat64* status) { return (int)syscall(SYS_fstat, fd, status); }

// glibc 2.32.
const char* sigabbrev_np(int number) {
  return number < 0 || number >= NSIG ? NULL : older_abbreviations[number];
}
const char* sigdescr_np(int number) {
  return number < 0 || number >= NSIG ? NULL : older_descriptions[number];
}

// glibc 2.34. The kernel has the call since 5.9.
void closefrom(int first) {
  if (syscall(SYS_close_range, (unsigned)first, UINT_MAX, 0) == 0) return;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == NULL) abort();
  for (const struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    const int fd = atoi(entry->d_name);  // 0 for "." and ".."
    if (fd >= first && fd != dirfd(directory)) close(fd);
  }
  closedir(directory);
}

// glibc 2.36; libstdc++ refers to it.
uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value)) {
    if (errno != EINTR) abort();
  }
  return value;
}
#pragma GCC visibility pop
