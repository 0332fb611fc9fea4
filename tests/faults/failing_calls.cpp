// Makes one system call of the process that loads this library fail. Its children are not affected.
//
// FAULT_CALL    the call: open, read, write, rename, mkdir, rmdir, unlink, fsync, flock, link, mmap, chmod, pipe, fork
// FAULT_NTH     which of these calls below FAULT_BELOW fails, from 1; if negative, all from this one on
// FAULT_ERRNO   with which error
// FAULT_BELOW   the folder; calls without a file (pipe, fork) count always
// FAULT_LOG     gets a line with the name of each call that counts, and `failed NAME`
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace {

char wanted[32], below[PATH_MAX];
long nth, error;
int log_file = -1;
pid_t process;
std::atomic<long> count;

__attribute__((constructor)) void begin() {
  const char* call = getenv("FAULT_CALL");
  const char* folder = getenv("FAULT_BELOW");
  const char* log = getenv("FAULT_LOG");
  if (!call || !folder || !log) return;
  snprintf(wanted, sizeof wanted, "%s", call);
  snprintf(below, sizeof below, "%s", folder);
  nth = atol(getenv("FAULT_NTH"));
  error = atol(getenv("FAULT_ERRNO"));
  log_file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  process = getpid();
  unsetenv("LD_PRELOAD");
}

void note(const char* before, const char* call) {
  char line[64];
  int size = snprintf(line, sizeof line, "%s%s\n", before, call);
  syscall(SYS_write, log_file, line, size);
}

bool is_nth(long number) { return nth > 0 ? number == nth : nth < 0 && number >= -nth; }

// Whether this call fails. It counts it, and sets errno.
bool fails(const char* call, const char* path) {
  if (log_file < 0 || getpid() != process) return false;
  if (path && strncmp(path, below, strlen(below)) != 0) return false;
  note("", call);
  if (strcmp(call, wanted) != 0 || !is_nth(++count)) return false;
  note("failed ", call);
  errno = static_cast<int>(error);
  return true;
}

const char* at(int folder, const char* path, char (&whole)[PATH_MAX]) {
  if (folder == AT_FDCWD || path[0] == '/') return path;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, whole, PATH_MAX - 1);
  whole[size < 0 ? 0 : size] = 0;
  return whole;
}

const char* of(int file, char (&whole)[PATH_MAX]) { return at(file, ".", whole); }

template <typename F>
F* real(F*, const char* name) { return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name)); }

mode_t mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; }

}  // namespace

#define REAL(name) static auto next = real(&name, #name)

extern "C" {

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = mode_of(flags, rest);
  va_end(rest);
  REAL(open64);
  return fails("open", path) ? -1 : next(path, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = mode_of(flags, rest);
  va_end(rest);
  REAL(open);
  return fails("open", path) ? -1 : next(path, flags, mode);
}
ssize_t read(int file, void* data, size_t size) {
  char path[PATH_MAX];
  REAL(read);
  return fails("read", of(file, path)) ? -1 : next(file, data, size);
}
ssize_t write(int file, const void* data, size_t size) {
  char path[PATH_MAX];
  REAL(write);
  return fails("write", of(file, path)) ? -1 : next(file, data, size);
}
int rename(const char* from, const char* to) {
  REAL(rename);
  return fails("rename", from) ? -1 : next(from, to);
}
int link(const char* from, const char* to) {
  REAL(link);
  return fails("link", to) ? -1 : next(from, to);
}
int mkdir(const char* path, mode_t mode) {
  REAL(mkdir);
  return fails("mkdir", path) ? -1 : next(path, mode);
}
int rmdir(const char* path) {
  REAL(rmdir);
  return fails("rmdir", path) ? -1 : next(path);
}
int unlink(const char* path) {
  REAL(unlink);
  return fails("unlink", path) ? -1 : next(path);
}
int unlinkat(int folder, const char* path, int flags) {
  char whole[PATH_MAX];
  REAL(unlinkat);
  return fails(flags & AT_REMOVEDIR ? "rmdir" : "unlink", at(folder, path, whole)) ? -1 : next(folder, path, flags);
}
int chmod(const char* path, mode_t mode) {
  REAL(chmod);
  return fails("chmod", path) ? -1 : next(path, mode);
}
int fsync(int file) {
  char path[PATH_MAX];
  REAL(fsync);
  return fails("fsync", of(file, path)) ? -1 : next(file);
}
int flock(int file, int operation) {
  char path[PATH_MAX];
  REAL(flock);
  return fails("flock", of(file, path)) ? -1 : next(file, operation);
}
void* mmap64(void* address, size_t size, int protection, int flags, int file, off64_t offset) {
  char path[PATH_MAX];
  if (file >= 0 && fails("mmap", of(file, path))) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}
void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  return mmap64(address, size, protection, flags, file, offset);
}
int pipe2(int* ends, int flags) {
  REAL(pipe2);
  return fails("pipe", nullptr) ? -1 : next(ends, flags);
}
int pipe(int* ends) { return pipe2(ends, 0); }
pid_t fork(void) {
  REAL(fork);
  return fails("fork", nullptr) ? -1 : next();
}
pid_t vfork(void) { return fork(); }  // the caller may return before the child executes another program

}  // extern "C"
