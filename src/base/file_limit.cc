#include "base/file_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace kymo {
namespace {

rlim_t g_former = 0;  // 0: not raised. Written before any other thread is started.

}  // namespace

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  const rlim_t former = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) g_former = former;
}

void give_back_file_limit() {
  rlimit limit{};
  if (g_former == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(g_former, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace kymo
