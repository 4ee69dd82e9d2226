#include "probe/boot.h"

#include "base/file.h"

namespace kymo::probe {

std::string boot_id() {
  const Result<std::string> id = read_file("/proc/sys/kernel/random/boot_id");
  return id ? id->substr(0, id->find('\n')) : "";
}

}  // namespace kymo::probe
