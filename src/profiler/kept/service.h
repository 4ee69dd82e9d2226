#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kymo::profiles {

// What a stack belongs to: a job of kymod, else a container, else all processes with one name.
// Profiles that are pulled belong to their target, or to a pod of Kubernetes.
struct Service {
  enum class Kind : std::uint8_t { process, container, job, target, pod };

  Kind kind = Kind::process;
  std::string name;  // of a container: the first 12 digits of its id

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the comparison for a pointer
  auto operator<=>(const Service&) const = default;
};

// "job:web", "container:0123456789ab", "process:nginx", "target:web", "pod:shop/web".
std::string text_of(const Service& service);
// Reads such a text. Returns nothing if it is not valid.
std::optional<Service> service_in(std::string_view text);

// The service of a process by its name. Threads of the kernel that do the same work have names that
// differ behind a slash, such as kworker/1:2: they are one service.
Service service_of_process(const std::string& name);

}  // namespace kymo::profiles
