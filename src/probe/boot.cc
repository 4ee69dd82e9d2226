#include "probe/boot.h"

#include "base/file.h"

namespace kymo::probe {

std::string boot_id() {
  const Result<std::string> id = read_file("/proc/sys/kernel/random/boot_id");
  return id ? id->substr(0, id->find('\n')) : "";
}

bool is_of_earlier_boot(const std::string& noted) {
  if (noted.empty()) return false;
  const std::string now = boot_id();
  return !now.empty() && noted != now;
}

}  // namespace kymo::probe
