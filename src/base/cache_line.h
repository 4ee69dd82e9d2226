#pragma once

#include <cstddef>

namespace kymo {

// Fields that different threads write stay this many bytes apart, so that a store of one thread
// does not take the line away from the other. It is a number of its own, because GCC warns that
// std::hardware_destructive_interference_size may change with the compiler's options.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace kymo
