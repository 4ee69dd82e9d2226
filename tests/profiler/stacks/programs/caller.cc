// caller FILE MILLISECONDS: a program with frame pointers. It calls a library without frame pointers,
// which calls back.
#include <cstdlib>

#include "library.h"
#include "own_time.h"

namespace {

[[gnu::noinline]] std::uint64_t called_back() {
  return own_time::burn(3'000'000);
}

[[gnu::noinline]] std::uint64_t calls_library(std::uint64_t* own) {
  const std::uint64_t used = in_library(called_back, own);
  asm volatile("");  // keeps the compiler from making the call a jump
  return used;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::uint64_t most_ns = std::strtoull(words[2], nullptr, 10) * 1'000'000;
  std::uint64_t library = 0;
  std::uint64_t back = 0;
  while (own_time::cpu_ns() < most_ns) back += calls_library(&library);
  own_time::write(
      words[1],
      {{"called_back", back}, {"in_library", library + back}, {"calls_library", library + back}});
  return 0;
}
