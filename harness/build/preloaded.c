/* Preloaded into cudafe++ and cicc, see nvcc_steps.py.
 *
 * They read what the preprocessor writes while it is written: from a pipe, if there is one beside the file that they
 * are to read. They take nothing but a file.
 *
 * The memory that cicc takes much of at a time is asked for in large pages: it reads torch's headers into 600 MB, for
 * which it waits for 150,000 page faults, and then finds its way through as many entries of page tables. glibc's own
 * malloc, which cudafe++ has, can be told so by a variable; cicc brings another, which calls mmap. Where the system has
 * no large pages, nothing changes.
 *
 * When cicc has translated the source, what it writes for the host compiler lies in its buffers until it ends, behind
 * all its optimisations. Here it is written when cicc begins with these, for which it removes a file that has kept a
 * name; a file FRONT_END_DONE with the number of the process says so.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define FRONT_END_DONE "front_end_done."

static const size_t WORTH_IT = 4 * 1024 * 1024;
static const int PIPE = 1024 * 1024;   /* as much as one may have without being root */
static const size_t AT_A_TIME = 128 * 1024;
static const char TRANSLATED[] = ".lgenfe.bc", PREPROCESSED[] = ".ii";

static int ends_with(const char *text, const char *end) {
  size_t length = strlen(text), last = strlen(end);
  return length >= last && strcmp(text + length - last, end) == 0;
}

FILE *fopen(const char *path, const char *mode) {
  FILE *(*next)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
  char pipe[4096];
  if (!ends_with(path, PREPROCESSED) || snprintf(pipe, sizeof pipe, "%s.pipe", path) >= (int)sizeof pipe)
    return next(path, mode);
  FILE *file = next(pipe, mode);
  if (file == NULL) return next(path, mode);
  fcntl(fileno(file), F_SETPIPE_SZ, PIPE);
  setvbuf(file, NULL, _IOFBF, AT_A_TIME);
  return file;
}

FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  void *area = (void *)syscall(SYS_mmap, address, size, protection, flags, file, offset);
  if (area != MAP_FAILED && (flags & MAP_ANONYMOUS) && size >= WORTH_IT) {
    int before = errno;
    madvise(area, size, MADV_HUGEPAGE);
    errno = before;
  }
  return area;
}

void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  return mmap(address, size, protection, flags, file, offset);
}

static void say_what_is_translated(const char *path) {
  if (!ends_with(path, TRANSLATED)) return;
  fflush(NULL);
  char name[64];
  snprintf(name, sizeof name, FRONT_END_DONE "%d", (int)getpid());
  int file = open(name, O_WRONLY | O_CREAT, 0666);
  if (file >= 0) close(file);
}

int unlink(const char *path) {
  say_what_is_translated(path);
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int remove(const char *path) {
  if (unlink(path) == 0) return 0;
  return errno == EISDIR ? (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR) : -1;
}
