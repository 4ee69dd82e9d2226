// A library without frame pointers that calls back into the program.
#include "library.h"

#include "own_time.h"

std::uint64_t in_library(std::uint64_t (*back)(), std::uint64_t* own) {
  *own += own_time::burn(2'000'000);
  const std::uint64_t used = back();
  asm volatile("");  // keeps the compiler from making the call a jump
  return used;
}
