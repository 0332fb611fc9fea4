/* Preloaded into compilers: what they take of memory at a time is asked for in large pages.
 *
 * cicc reads torch's headers into 600 MB, of which it waits for 150,000 page faults, and then finds its way through it
 * over as many entries of page tables. glibc's own malloc can be told to do so by a variable; this is for those that
 * bring another and call mmap themselves. Where the system has no large pages, nothing changes.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static const size_t WORTH_IT = 128 * 1024; /* what lies beside another such area can share a large page with it */

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  void *area = (void *)syscall(SYS_mmap, address, size, protection, flags, file, offset);
  if (area != MAP_FAILED && (flags & MAP_ANONYMOUS) && size >= WORTH_IT) madvise(area, size, MADV_HUGEPAGE);
  return area;
}

void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  return mmap(address, size, protection, flags, file, offset);
}
