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
  struct Told {
    std::optional<runtime::ProcessId> process;
    bool is_silent = false;
  };
  const std::optional<Told> told =
      places_.at(container.kind).ask([runtimes = runtimes_, container] {
        runtime::Runtime& asked = runtimes->of(container.kind);
        Told answer{asked.process_of(container.id)};
        answer.is_silent = !answer.process && asked.is_silent();
        return answer;
      });
  if (told && !told->is_silent) return told->process;
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
