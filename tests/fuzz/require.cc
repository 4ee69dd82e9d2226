#include <cstdio>
#include <cstdlib>

#include "targets.h"

namespace kymo::fuzz {

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
  }
}

}  // namespace kymo::fuzz
