#include "profiler/kept/reading.h"

#include <gtest/gtest.h>

#include "profiler/kept/sqlite_store.h"
#include "some_minute.h"
#include "support/temporary_directory.h"

namespace kymo::profiles {
namespace {

TEST(StepsTest, EachMinuteIsInOneStepAndTheLastMayBeShorter) {
  const std::vector<MinuteTotal> totals{
      {10, {1, 100}}, {11, {2, 200}}, {13, {4, 400}}, {16, {8, 800}}};
  const std::vector<CoveredMinute> covered{{10, 60}, {11, 60}, {12, 60}, {13, 30}, {16, 60}};
  const Steps steps = steps_of({10, 17}, 4, totals, covered);
  EXPECT_EQ(steps.minutes, 2);
  ASSERT_EQ(steps.steps.size(), 4U);
  EXPECT_EQ(steps.steps[0].weight.value, 300U);
  EXPECT_EQ(steps.steps[1].weight.samples, 4U);
  EXPECT_EQ(steps.steps[1].covered_ns, 90U);
  EXPECT_EQ(steps.steps[2].covered_ns, 0U);
  EXPECT_EQ(steps.steps[3].weight.value, 800U);
}

TEST(StepsTest, AStepIsAtLeastAMinute) {
  EXPECT_EQ(steps_of({10, 13}, 100, {}, {}).steps.size(), 3U);
  EXPECT_EQ(steps_of({10, 11}, 1, {}, {}).steps.size(), 1U);
}

// A profile of a dump with samples of CRIU and of the target, which is the process "web".
stacks::NamedProfile divided_profile() {
  stacks::NamedProfile profile;
  profile.functions = {{"f", "m", true}};
  profile.stacks = {{"criu", {0}, false, {1, 10}, "freeze", "criu"},
                    {"web", {0}, false, {2, 20}, "freeze", "target"}};
  return profile;
}

TEST(KeepComparableTest, OfADumpTheStacksOfTheService) {
  const auto kept = [](std::optional<Service> service) {
    stacks::NamedProfile profile = divided_profile();
    const Result<void> done = keep_comparable(profile, service, "dump.pb.gz");
    return done ? std::to_string(profile.sum().samples) : done.error().message;
  };
  EXPECT_EQ(kept({}), "3");
  EXPECT_EQ(kept(Service{Service::Kind::job, "web"}), "2");
  EXPECT_EQ(kept(Service{Service::Kind::container, "0123"}), "2");
  EXPECT_EQ(kept(Service{Service::Kind::process, "criu"}), "1");
  EXPECT_EQ(kept(Service{Service::Kind::process, "sh"}), "dump.pb.gz has no stacks of process:sh");
}

TEST(KeepComparableTest, OtherProfilesAreComparedAsTheyAre) {
  stacks::NamedProfile profile = divided_profile();
  for (auto& stack : profile.stacks) stack.role.clear();
  EXPECT_TRUE(keep_comparable(profile, Service{Service::Kind::job, "web"}, "x"));
  EXPECT_EQ(profile.sum().samples, 3U);
}

TEST(ComparedRangeTest, TheMinuteThatBothTouchBelongsToTheOneThatIsShown) {
  const auto compared = [](std::optional<std::int64_t> begin) {
    const auto range = compared_range({10, 16}, begin);
    return range ? std::pair(range->begin, range->end) : std::pair<std::int64_t, std::int64_t>();
  };
  EXPECT_EQ(compared({}), std::pair(4L, 10L));
  EXPECT_EQ(compared(5), std::pair(5L, 10L));
  EXPECT_EQ(compared(16), std::pair(16L, 22L));
  EXPECT_EQ(compared(10), std::pair(0L, 0L));
  EXPECT_EQ(compared(15), std::pair(0L, 0L));
}

TEST(OpenKeptTest, AFolderWithoutProfilesIsNamed) {
  const test::TemporaryDirectory folder;
  const auto opened = open_kept(folder.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message,
            "no profiles are kept in " + folder.path() + ": there is no profiles.db");
}

}  // namespace
}  // namespace kymo::profiles
