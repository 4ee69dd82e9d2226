#include "checkpoint/runtimes/podman/podman_files.h"

#include <chrono>
#include <cstdint>
#include <fstream>

#include "base/patience.h"

namespace kymo::runtime {

namespace fs = std::filesystem;

bool move_file(const std::string& from, const std::string& to) {
  std::error_code error;
  if (!fs::exists(from, error)) return true;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (!error) return fs::remove(from, error);
  fs::remove(to, error);  // a part of it would be taken for the whole file
  return false;
}

bool disk_answers_for(const std::string& path) {
  constexpr std::uint64_t kBytesPerMs = (std::uint64_t{4} << 20U) / 1000;
  const auto size = within(kDiskPatience, [path] {
    std::error_code missing;
    const std::uintmax_t bytes = fs::file_size(path, missing);
    return missing ? 0 : bytes;
  });
  if (!size) return false;
  const auto patience = kDiskPatience + std::chrono::milliseconds(*size / kBytesPerMs);
  return within(patience,
                [path] {
                  constexpr std::size_t kAtOnce = std::size_t{1} << 20U;
                  std::ifstream file(path, std::ios::binary);
                  std::string part(kAtOnce, 0);
                  while (file.read(part.data(), kAtOnce)) {
                  }
                  return true;
                })
      .has_value();
}

}  // namespace kymo::runtime
