#include "report/gantt.h"

#include <gtest/gtest.h>

namespace kymo::report {
namespace {

std::size_t rectangles(const std::string& script) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = script.find(" rectangle ", at)) != std::string::npos; ++at) {
    ++count;
  }
  return count;
}

TEST(GanttTest, EachStretchIsABarAndEachPhaseALine) {
  criu::LogPhases phases;
  phases.total_us = 1000;
  phases.phases = {{"freeze", 300, 0, "", {{0, 100}, {800, 1000}}},
                   {"core", 700, 0, "", {{100, 800}}}};
  const std::string script = gantt_script(phases, "It's one", PictureFormat::svg);
  EXPECT_EQ(rectangles(script), 3U);
  EXPECT_NE(script.find("set title 'It''s one'"), std::string::npos) << script;
  EXPECT_NE(script.find("from 0.800000,-0.35 to 1.000000,0.35"), std::string::npos) << script;
  EXPECT_NE(script.find("'core  700 µs' 1"), std::string::npos) << script;
}

TEST(GanttTest, StretchesThatAlternateWithinAPixelAreOneBar) {
  criu::LogPhases phases;
  phases.total_us = 20'000'000;
  phases.phases = {{"core", 0, 0, "", {}}, {"memory", 0, 0, "", {}}};
  for (std::uint64_t at = 0; at < phases.total_us; at += 20) {
    phases.phases[0].spans.push_back({at, at + 10});
    phases.phases[1].spans.push_back({at + 10, at + 20});
  }
  EXPECT_EQ(rectangles(gantt_script(phases, "", PictureFormat::svg)), 2U);
}

}  // namespace
}  // namespace kymo::report
