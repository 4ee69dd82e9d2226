#include "criu/program_names.h"

#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "kymo/result.h"
#include "probe/process.h"

namespace kymo::criu {
namespace {

struct Names {
  std::mutex mutex;
  std::set<std::string, std::less<>> names;
};

Names& names_of_criu() {
  static Names& names = *new Names;  // a thread may go on while the program ends
  return names;
}

}  // namespace

void note_name_of_criu(pid_t pid) {
  const Result<probe::Process> seen = probe::read_process(pid);
  if (!seen) return;
  Names& known = names_of_criu();
  const std::lock_guard lock(known.mutex);
  known.names.insert(seen->name);
}

bool is_name_of_criu(std::string_view name) {
  if (name.starts_with("criu")) return true;
  Names& known = names_of_criu();
  const std::lock_guard lock(known.mutex);
  return known.names.contains(name);
}

}  // namespace kymo::criu
