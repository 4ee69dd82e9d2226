#include "profiler/kept/service.h"

#include <array>
#include <utility>

namespace kymo::profiles {
namespace {

constexpr std::array kKinds{
    std::pair(Service::Kind::process, "process"), std::pair(Service::Kind::container, "container"),
    std::pair(Service::Kind::job, "job"), std::pair(Service::Kind::target, "target"),
    std::pair(Service::Kind::pod, "pod")};

}  // namespace

std::string text_of(const Service& service) {
  for (const auto& [kind, name] : kKinds) {
    if (kind == service.kind) return std::string(name) + ":" + service.name;
  }
  return service.name;
}

std::optional<Service> service_in(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return std::nullopt;
  for (const auto& [kind, name] : kKinds) {
    if (text.substr(0, colon) == name) return Service{kind, std::string(text.substr(colon + 1))};
  }
  return std::nullopt;
}

Service service_of_process(const std::string& name) {
  constexpr std::string_view kWorker = "kworker/";
  if (name.starts_with(kWorker)) return {Service::Kind::process, "kworker"};
  return {Service::Kind::process, name.empty() ? "[unknown]" : name};
}

}  // namespace kymo::profiles
