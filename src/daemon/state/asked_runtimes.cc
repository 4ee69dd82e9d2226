#include "daemon/state/asked_runtimes.h"

#include <algorithm>
#include <cstddef>

namespace kymo::daemon {

std::map<runtime::Kind, SilentPlace> AskedRuntimes::places() {
  std::map<runtime::Kind, SilentPlace> places;
  for (std::size_t i = 0; i < runtime::runtime_table().size(); ++i) {
    places.try_emplace(static_cast<runtime::Kind>(i));
  }
  return places;
}

Result<std::optional<runtime::ProcessId>> AskedRuntimes::process_of(const ContainerOf& container) {
  const auto told = places_.at(container.kind).ask([runtimes = runtimes_, container] {
    return runtimes->of(container.kind).process_of(container.id);
  });
  if (told && *told) return *told;
  const std::string name(runtime::name_of(container.kind));
  return Error{Code::unavailable, runtime::row_of(container.kind).has_bundles
                                      ? name + "'s folder " + runc_root_ + " does not answer"
                                      : name + " does not answer"};
}

bool AskedRuntimes::waits() const {
  return std::any_of(places_.begin(), places_.end(),
                     [](const auto& place) { return place.second.is_silent(); });
}

}  // namespace kymo::daemon
