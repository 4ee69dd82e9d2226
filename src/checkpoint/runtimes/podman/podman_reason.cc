#include "checkpoint/runtimes/podman/podman_reason.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_object.h"
#include "checkpoint/runtimes/shared/command.h"

namespace kymo::runtime {
namespace {

struct Remedy {
  std::string_view part;  // of podman's message
  std::string_view text;
};

constexpr std::string_view kLowerLimits =
    ": podman asks for more open files or processes than its own process may have. Start the "
    "container with --ulimit nofile=20000:20000 --ulimit nproc=32768:32768 before its image";

constexpr std::array kRemedies{
    Remedy{"error setting rlimit type", kLowerLimits},  // runc
    Remedy{"setrlimit `RLIMIT_", kLowerLimits},         // crun
};

// What runc says of a CRIU that ended without an answer.
constexpr std::string_view kNoAnswer = "read unixpacket @->@: EOF";

}  // namespace

std::string podman_reason(const std::string& errors) {
  constexpr std::string_view kError = "Error: ";
  std::string line = last_line(errors);
  if (line.starts_with(kError)) line.erase(0, kError.size());
  for (const Remedy& remedy : kRemedies) {
    if (line.find(remedy.part) != std::string::npos) return line.append(remedy.text);
  }
  // podman leaves out why its runc failed.
  if (errors.find(kNoAnswer) != std::string::npos && line.find(kNoAnswer) == std::string::npos) {
    line.append(" (").append(kNoAnswer).append(")");
  }
  return line;
}

PodmanTimes podman_times(const std::string& output, const std::string& verb) {
  constexpr std::uint64_t kNanosecondsInAMicrosecond = 1000;
  const nlohmann::json said = parse_object(output);
  const auto time_in = [&](const nlohmann::json& object, const char* whose) {
    const std::string name = whose + ("_" + verb) + "_duration";
    return number_of(object, name.c_str()) * kNanosecondsInAMicrosecond;
  };
  const nlohmann::json& containers = member(said, "container_statistics");
  const bool any = containers.is_array() && !containers.empty();
  return {time_in(said, "podman"), any ? time_in(containers[0], "runtime") : 0};
}

}  // namespace kymo::runtime
