#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lens/analysis/recording_diff.h"
#include "temp_folder.h"

namespace kymo::analysis {

// A test that compares recordings which it writes into a folder of its own.
class DiffTest : public ::testing::Test {
 protected:
  // Fails the test if the recordings cannot be compared.
  static RecordingDiff diff(const std::vector<std::string>& before,
                            const std::vector<std::string>& after,
                            const DiffOptions& options = {}) {
    auto made = diff_recordings(before, after, options);
    EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
    return made ? std::move(*made) : RecordingDiff();
  }

  // Fails the test if there is no such metric.
  static const MetricDiff& metric(const RecordingDiff& diff, const std::string& name) {
    for (const MetricDiff& metric : diff.metrics) {
      if (metric.name == name) return metric;
    }
    ADD_FAILURE() << "no metric " << name;
    static const MetricDiff kNone;
    return kNone;
  }

  tests::TempFolder folder_;
};

}  // namespace kymo::analysis
