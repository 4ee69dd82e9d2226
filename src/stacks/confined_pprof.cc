#include "stacks/confined_pprof.h"

#include <cstdint>
#include <set>
#include <vector>

#include "confine/run.h"
#include "stacks/output.h"

namespace kymo::stacks {
namespace {

// The files of the modules in the profile, from which their names are read.
std::vector<int> files_in(const Profile& profile) {
  std::set<int> files;
  for (const auto& [trace, weight] : profile.traces) {
    for (const Frame& frame : trace.frames) {
      if (frame.module != nullptr && frame.module->file.valid()) {
        files.insert(frame.module->file.get());
      }
    }
  }
  return {files.begin(), files.end()};
}

Result<std::string> make(const Profile& profile, bool debug_info) {
  return confine::read_confined(naming_bounds(profile), [&]() -> Result<std::string> {
    Symbols symbols(debug_info);
    return pprof(profile, symbols);
  });
}

}  // namespace

confine::Bounds naming_bounds(const Profile& profile) {
  confine::Bounds bounds;
  bounds.readable = {"/usr/lib/debug/.build-id"};
  bounds.descriptors = files_in(profile);
  bounds.memory_bytes = std::uint64_t{4} << 30U;
  bounds.answer_bytes = std::uint64_t{256} << 20U;
  return bounds;
}

Result<std::string> confined_pprof(const Profile& profile) {
  Result<std::string> file = make(profile, true);
  return file ? file : make(profile, false);
}

}  // namespace kymo::stacks
