// Shifts the wall clock of one server. The file that the environment variable CLOCK_SHIFT names holds the shift in
// microseconds, as 8 bytes in the order of the machine. It may change while the server runs. System calls are made
// directly: looking up the functions of the C library would allocate, and jemalloc reads the clock while it starts.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *shift;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLOCK_SHIFT");
  int fd = path ? open(path, O_RDONLY) : -1;
  void *p = fd >= 0 ? mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (p != MAP_FAILED) shift = p;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
  int result = syscall(SYS_clock_gettime, clock, t);
  if (result == 0 && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    long long us = t->tv_sec * 1000000LL + t->tv_nsec / 1000 + *shift;
    t->tv_sec = us / 1000000;
    t->tv_nsec = us % 1000000 * 1000 + t->tv_nsec % 1000;
  }
  return result;
}

int gettimeofday(struct timeval *tv, void *zone) {
  (void)zone;
  struct timespec t;
  int result = clock_gettime(CLOCK_REALTIME, &t);
  tv->tv_sec = t.tv_sec;
  tv->tv_usec = t.tv_nsec / 1000;
  return result;
}

time_t time(time_t *p) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (p) *p = t.tv_sec;
  return t.tv_sec;
}
