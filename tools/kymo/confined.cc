#include "confined.h"

#include <filesystem>

#include "confine/run.h"
#include "print.h"

namespace kymo::cli {

void look_confined(Context& context, const std::vector<std::string>& paths,
                   const std::function<void()>& look) {
  constexpr std::chrono::hours kChecksumsTime{1};
  confine::Bounds bounds;
  bounds.memory_bytes = std::uint64_t{4} << 30;
  bounds.cpu_time = kChecksumsTime;
  for (const std::string& path : paths) {
    bounds.readable.push_back(path);
    // CRIU's work folder is beside the folder of the images.
    bounds.readable.push_back(std::filesystem::path(absolute_path(path)).parent_path());
  }
  const Result<int> code = confine::run_confined(bounds, [&] {
    look();
    return context.exit_code;
  });
  if (!code) return fail(context, code.error());
  context.exit_code = *code;
}

}  // namespace kymo::cli
