// Makes system calls of a program fail once. It is linked into the program, and replaces functions
// of the C library. KYMO_FAIL is "CALL:N:ERRNO" (the N-th call of this name, counted from 1), or
// several of these, separated by commas. ERRNO 0 makes a write short. Prints "injected" on stderr
// when a call fails.

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

namespace {

struct Order {
  char call[32] = {};
  long nth = 0;
  int error = 0;
  std::atomic<long> calls{0};
};

struct Orders {
  static constexpr int kMax = 4;
  Order orders[kMax];

  Orders() {
    const char* text = getenv("KYMO_FAIL");
    for (int i = 0; i < kMax && text != nullptr && *text != '\0'; ++i) {
      const char* colon = strchr(text, ':');
      memcpy(orders[i].call, text, static_cast<size_t>(colon - text));
      char* end = nullptr;
      orders[i].nth = strtol(colon + 1, &end, 10);
      orders[i].error = static_cast<int>(strtol(end + 1, &end, 10));
      text = *end == ',' ? end + 1 : end;
    }
  }
};

// Whether this call must fail.
bool strikes(const char* call, int* error) {
  static Orders all;
  bool struck = false;
  for (Order& order : all.orders) {
    if (strcmp(order.call, call) == 0 && ++order.calls == order.nth) {
      *error = order.error;
      struck = true;
    }
  }
  if (struck) {
    syscall(SYS_write, 2, "injected\n", 9);
  }
  return struck;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name, bugprone-macro-parentheses)
// NOLINTBEGIN(performance-no-int-to-ptr): the C library's own calls, with its types and a syscall's
// result
extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  int error = 0;
  if (fd > 2 && strikes("write", &error)) {
    if (error != 0) {
      errno = error;
      return -1;
    }
    size = size / 2 + 1;
  }
  return syscall(SYS_write, fd, data, size);
}

int open(const char* path, int flags, ...) {
  int error = 0;
  // Only files that are opened for writing. Files of /proc are read to describe the machine, and a
  // failure there has no effect.
  if ((flags & 3) != 0 && strikes("open", &error)) {
    errno = error;
    return -1;
  }
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return real<int(const char*, int, mode_t)>("open")(path, flags, mode);
}

#define FAILING_CALL(name, parameters, arguments) \
  int name parameters {                           \
    int error = 0;                                \
    if (strikes(#name, &error)) {                 \
      errno = error;                              \
      return -1;                                  \
    }                                             \
    return real<int parameters>(#name) arguments; \
  }

FAILING_CALL(ftruncate, (int fd, off_t size), (fd, size))
FAILING_CALL(rename, (const char* from, const char* to), (from, to))
FAILING_CALL(renameat2, (int a, const char* from, int b, const char* to, unsigned flags),
             (a, from, b, to, flags))
FAILING_CALL(unlink, (const char* path), (path))
FAILING_CALL(flock, (int fd, int operation), (fd, operation))

int posix_fallocate(int fd, off_t from, off_t size) {
  int error = 0;
  if (strikes("posix_fallocate", &error)) {
    return error;
  }
  return real<int(int, off_t, off_t)>("posix_fallocate")(fd, from, size);
}

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  int error = 0;
  if (fd >= 0 && strikes("mmap", &error)) {
    errno = error;
    return reinterpret_cast<void*>(-1);
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, fd, offset));
}
}
// NOLINTEND(performance-no-int-to-ptr)
// NOLINTEND(readability-inconsistent-declaration-parameter-name, bugprone-macro-parentheses)
