#include "daemon/recording/standstills.h"

#include <gtest/gtest.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace kymo::daemon {
namespace {

TEST(StandstillsTest, AQuantileCanBeAsked) {
  Standstills standstills;
  for (const std::uint64_t ms : {1UL, 3UL, 300UL, 1'700UL, 400'000UL})
    standstills.add(ms * 1'000'000);
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, standstills.Collect());
  const std::string page = text.str();
  for (const char* line :
       {"# TYPE kymo_stood_still_seconds histogram\n",
        "kymo_stood_still_seconds_bucket{le=\"0.001\"} 1\n",
        "kymo_stood_still_seconds_bucket{le=\"0.005\"} 2\n",
        "kymo_stood_still_seconds_bucket{le=\"0.25\"} 2\n",
        "kymo_stood_still_seconds_bucket{le=\"0.5\"} 3\n",
        "kymo_stood_still_seconds_bucket{le=\"1.5\"} 3\n",
        "kymo_stood_still_seconds_bucket{le=\"2\"} 4\n",
        "kymo_stood_still_seconds_bucket{le=\"+Inf\"} 5\n", "kymo_stood_still_seconds_count 5\n"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  }
  EXPECT_NE(page.find("kymo_stood_still_seconds_sum 402.004"), std::string::npos) << page;
}

}  // namespace
}  // namespace kymo::daemon
