#include "base/proc/boot.h"

namespace kymo::probe {

bool is_of_earlier_boot(const std::string& noted) {
  if (noted.empty()) return false;
  const std::string now = boot_id();
  return !now.empty() && noted != now;
}

}  // namespace kymo::probe
