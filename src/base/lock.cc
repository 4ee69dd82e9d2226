#include "base/lock.h"

#include <sys/file.h>

#include <cerrno>
#include <thread>

namespace kymo {

int lock_within(int fd, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kTryEvery{10};
  const auto until = std::chrono::steady_clock::now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= until) return errno;
    std::this_thread::sleep_for(kTryEvery);
  }
  return 0;
}

}  // namespace kymo
