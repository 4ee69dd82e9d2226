#include "base/inodes.h"

#include <sys/statvfs.h>

#include <algorithm>

namespace kymo {
namespace {

constexpr std::string_view kInodesAdvice =
    " free inodes, and each file needs one (df -i): delete files there, or choose another "
    "directory";

}  // namespace

std::optional<std::uint64_t> few_free_inodes(const std::string& path) {
  struct statvfs disk {};
  std::string place = path;
  while (::statvfs(place.c_str(), &disk) != 0) {
    const std::size_t slash = place.rfind('/');
    if (slash == std::string::npos || place == "/") return std::nullopt;
    place.resize(std::max<std::size_t>(slash, 1));
  }
  constexpr fsblkcnt_t kFew = 8;  // others may have removed some files since then
  const bool few = disk.f_ffree == 0 || (disk.f_ffree < kFew && disk.f_bfree != 0);
  if (disk.f_files == 0 || !few) return std::nullopt;  // 0 if inodes are made as they are needed
  return disk.f_ffree;
}

std::string advice_on_few_inodes(std::uint64_t free) {
  std::string advice = "; its disk has " + (free == 0 ? "no" : "only " + std::to_string(free));
  return advice.append(kInodesAdvice);
}

bool has_advice_on_inodes(std::string_view message) {
  return message.find(kInodesAdvice) != std::string_view::npos;
}

}  // namespace kymo
