#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kymo/metric.h"
#include "kymo/registry.h"
#include "kymo/result.h"

namespace kymo {

// What other modules do with a registry and programs do not.
struct RegistryAccess {
  // Adds a metric of another program, which is perhaps linked with an earlier libkymo. As
  // Registry::callback_family(), but the name may end in a unit that the metric does not have.
  // Precondition: `read` is not empty.
  static Result<void> add_foreign(Registry& registry, Metric metric, Registry::FamilyCallback read);

  // How often callbacks of the registry have thrown. Outlives the registry, and keeps nothing of it.
  static std::shared_ptr<const std::atomic<std::uint64_t>> errors_of_callbacks(
      const Registry& registry);

  // The owner of the marks (ForeignCall) of threads that run callbacks of the registry.
  static const void* turn(const Registry& registry);

  // The metric whose callback runs now, in a sample or in a scrape; empty: none does.
  static std::string running_callback(const Registry& registry);

  // The names of the metrics that were registered after the first `count`, oldest first.
  static std::vector<std::string> metrics_after(const Registry& registry, std::size_t count);
};

}  // namespace kymo
