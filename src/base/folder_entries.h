#pragma once

#include <dirent.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace kymo {

// Calls look(name, number) with the entries of an open folder whose names are numbers, as those of /proc are. Allocates no
// memory, so a fork of a program with threads may use it: there, another thread may have held a lock of the allocator for
// ever.
template <class Look>
void for_each_numbered_entry(int folder, Look&& look) {
  alignas(dirent64) std::array<char, 4096> entries{};
  for (;;) {
    const ssize_t got = ::getdents64(folder, entries.data(), entries.size());
    if (got <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      const char* const name = entry->d_name;
      const char* const end = name + std::strlen(name);
      int number = 0;
      const auto [last, error] = std::from_chars(name, end, number);
      if (error == std::errc() && last == end) look(name, number);
    }
  }
}

}  // namespace kymo
