#include "profiler/stacks/confined_pprof.h"

#include <cstdint>

#include "base/confine/run.h"
#include "profiler/stacks/output.h"

namespace kymo::stacks {

confine::Bounds naming_bounds(const NamingPlan& plan) {
  confine::Bounds bounds;
  bounds.readable = {"/usr/lib/debug/.build-id"};
  bounds.descriptors = plan.files();
  bounds.memory_bytes = std::uint64_t{4} << 30U;
  bounds.answer_bytes = std::uint64_t{256} << 20U;
  return bounds;
}

Result<std::string> confined_pprof(const Profile& profile) {
  NamingPlan plan(profile);
  for (;;) {
    Result<std::string> file =
        confine::read_confined(naming_bounds(plan), [&]() -> Result<std::string> {
          Symbols symbols(&plan);
          return pprof(profile, symbols);
        });
    if (file || !plan.read_less()) return file;
  }
}

}  // namespace kymo::stacks
