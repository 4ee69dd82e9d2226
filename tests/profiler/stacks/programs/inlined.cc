// inlined FILE MILLISECONDS: a program whose functions the compiler inlines.
#include <cstdlib>

#include "own_time.h"

namespace shapes {

template <class Number>
[[gnu::always_inline]] inline std::uint64_t innermost(Number ns) {
  return own_time::burn(ns);
}

struct Square {
  [[gnu::always_inline]] std::uint64_t area() const { return innermost(std::uint64_t{3'000'000}); }
  [[gnu::always_inline]] std::uint64_t border() const { return own_time::burn(2'000'000); }
};

}  // namespace shapes

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::uint64_t most_ns = std::strtoull(words[2], nullptr, 10) * 1'000'000;
  const shapes::Square square;
  std::uint64_t area = 0;
  std::uint64_t border = 0;
  while (own_time::cpu_ns() < most_ns) {
    area += square.area();
    border += square.border();
  }
  own_time::write(words[1], {{"area", area}, {"innermost", area}, {"border", border}});
  return 0;
}
