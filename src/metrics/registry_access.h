#pragma once

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
};

}  // namespace kymo
