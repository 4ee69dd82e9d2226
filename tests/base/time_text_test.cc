#include "base/time_text.h"

#include <gtest/gtest.h>

#include <string>

namespace kymo {
namespace {

std::string refusal(const char* text, NoUnit no_unit = NoUnit::is_seconds) {
  const Result<double> time = nanoseconds_of_text(text, no_unit);
  return time ? "taken" : time.error().message;
}

TEST(TimeText, TakesTheUsualForms) {
  EXPECT_EQ(nanoseconds_of_text("1s", NoUnit::is_refused).value(), 1e9);
  EXPECT_EQ(nanoseconds_of_text("500ms", NoUnit::is_refused).value(), 5e8);
  EXPECT_EQ(nanoseconds_of_text("250us", NoUnit::is_refused).value(), 2.5e5);
  EXPECT_EQ(nanoseconds_of_text("1.5m", NoUnit::is_refused).value(), 9e10);
  EXPECT_EQ(nanoseconds_of_text("2h", NoUnit::is_refused).value(), 7.2e12);
  EXPECT_EQ(nanoseconds_of_text("-0.5s", NoUnit::is_refused).value(), -5e8);
  EXPECT_EQ(nanoseconds_of_text("0", NoUnit::is_seconds).value(), 0);
  EXPECT_EQ(nanoseconds_of_text("0.3", NoUnit::is_seconds).value(), 0.3 * 1e9);
}

TEST(TimeText, SaysWhatIsWrongAndWhatToGive) {
  EXPECT_EQ(refusal("soon"), "soon is not a time: give 30s, 500ms, 5m or 1h");
  EXPECT_EQ(refusal(""), " is not a time: give 30s, 500ms, 5m or 1h");
  EXPECT_EQ(refusal("inf"), "inf is not a time: give 30s, 500ms, 5m or 1h");
  EXPECT_EQ(refusal("3 s"), " s is not a unit of time: give 30s, 500ms, 5m or 1h");
  EXPECT_EQ(refusal("3fortnights"), "fortnights is not a unit of time: give 30s, 500ms, 5m or 1h");
  EXPECT_EQ(refusal("30", NoUnit::is_refused),
            "30 has no unit: give 30s, or use the unit ms, m or h");
  EXPECT_EQ(refusal("1e300h"), "1e300h is too long");
  EXPECT_EQ(refusal("-1e300h"), "-1e300h is too long");
}

}  // namespace
}  // namespace kymo
