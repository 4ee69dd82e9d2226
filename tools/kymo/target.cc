#include "target.h"

#include <charconv>
#include <cstdint>

#include "lens/report/api_json.h"

namespace kymo::cli {
namespace {

std::vector<TargetKind> list_kinds() {
  std::vector<TargetKind> kinds{{v1::PROCESS, "process", "A process, or a job", "PID|JOB",
                                 "PID of a process, or name or id of a job"}};
  for (int value = v1::PROCESS + 1; value <= v1::Runtime_MAX; ++value) {
    const auto runtime = static_cast<v1::Runtime>(value);
    const std::string name = report::lower(v1::Runtime_Name(runtime));
    kinds.push_back(
        {runtime, name, "A container of " + name, "NAME|ID", "Name or id of the container"});
  }
  return kinds;
}

}  // namespace

const std::vector<TargetKind>& target_kinds() {
  static const std::vector<TargetKind> kKinds = list_kinds();
  return kKinds;
}

v1::Target target_of(const TargetKind& kind, const std::string& text) {
  v1::Target target;
  if (kind.runtime != v1::PROCESS) {
    target.mutable_container()->set_runtime(kind.runtime);
    target.mutable_container()->set_name(text);
    return target;
  }
  std::int32_t pid = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, pid);
  if (parsed.ec == std::errc() && parsed.ptr == end) {
    target.set_pid(pid);
  } else {
    target.set_job(text);
  }
  return target;
}

}  // namespace kymo::cli
