#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "daemon/database/store.h"
#include "daemon/recording/metrics.h"
#include "daemon/state/jobs.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {

// A Jobs object with the store and the metrics that it needs, in a folder for the test.
struct JobParts {
  test::TemporaryDirectory folder;
  std::unique_ptr<store::Store> store = store::Store::open(folder.path() + "/kymo.db").value();
  std::unique_ptr<Metrics> metrics = Metrics::make().value();
  std::optional<runtime::ProcessId> container;  // the process of every job that is a container
  Jobs jobs{*store, *metrics, folder.path(), [this](const ContainerOf&) { return container; }};
};

}  // namespace kymo::daemon
