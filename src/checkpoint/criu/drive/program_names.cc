#include "checkpoint/criu/drive/program_names.h"

#include <functional>
#include <mutex>
#include <set>
#include <string>

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

void note_name_of_criu(const std::string& name) {
  if (name.empty()) return;
  Names& known = names_of_criu();
  const std::lock_guard lock(known.mutex);
  known.names.insert(name);
}

bool is_name_of_criu(std::string_view name) {
  if (name.starts_with("criu")) return true;
  Names& known = names_of_criu();
  const std::lock_guard lock(known.mutex);
  return known.names.contains(name);
}

}  // namespace kymo::criu
