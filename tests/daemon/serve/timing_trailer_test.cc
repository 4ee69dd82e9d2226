#include "daemon/serve/timing_trailer.h"

#include <gtest/gtest.h>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::daemon {
namespace {

v1::TimingTree parsed(const std::string& trailer) {
  v1::TimingTree tree;
  EXPECT_TRUE(tree.ParseFromString(trailer));
  return tree;
}

TEST(TimingTrailerTest, HoldsTheTree) {
  ScopeTree tree("dump");
  {
    const EnterScope here(tree);
    Scope step("step", {.category = "files", .parallel = true});
    step.add_bytes(7);
    const Scope part("part");
    step.fail("it broke");
  }
  tree.end();
  const v1::TimingTree out = parsed(timing_trailer(tree, ""));
  ASSERT_EQ(out.scopes_size(), 3);
  EXPECT_EQ(out.scopes(0).name(), "dump");
  EXPECT_EQ(out.scopes(1).category(), "files");
  EXPECT_EQ(out.scopes(1).bytes(), 7U);
  EXPECT_EQ(out.scopes(1).error(), "it broke");
  EXPECT_TRUE(out.scopes(1).parallel());
  EXPECT_EQ(out.scopes(2).parent(), 1U);
  EXPECT_EQ(out.scopes(2).start_ns(), tree.records()[2].start_ns);
  EXPECT_EQ(out.scopes(2).duration_ns(), tree.records()[2].duration_ns);
  EXPECT_EQ(out.scopes_left_out(), 0U);
}

TEST(TimingTrailerTest, ALargeTreeLosesItsInnermostScopes) {
  ScopeTree tree("dump", 600);
  const EnterScope here(tree);
  for (int step = 0; step < 10; ++step) {
    const Scope outer("step");
    for (int i = 0; i < 70; ++i) const Scope inner("part");
  }
  const std::string trailer = timing_trailer(tree, "");
  EXPECT_LE(trailer.size(), kMaxTrailerBytes);
  const v1::TimingTree out = parsed(trailer);
  EXPECT_EQ(out.scopes_size(), 10) << "the root and the 9 steps that fit into the limit";
  EXPECT_EQ(out.scopes_left_out(), 711U - 10U);
}

TEST(TimingTrailerTest, ALongMessageIsLeftItsRoom) {
  ScopeTree tree("dump");
  const EnterScope here(tree);
  for (int i = 0; i < 50; ++i) const Scope part("part");
  EXPECT_EQ(parsed(timing_trailer(tree, std::string(1000, 'x'))).scopes_size(), 51);
  const v1::TimingTree out = parsed(timing_trailer(tree, std::string(5580, 'x')));
  EXPECT_EQ(out.scopes_size(), 1);
  EXPECT_EQ(out.scopes_left_out(), 50U);
  EXPECT_EQ(parsed(timing_trailer(tree, std::string(1860, '%'))).scopes_size(), 1)
      << "5580 bytes hold a third as many of these characters, because each is sent as three bytes";
  EXPECT_EQ(timing_trailer(tree, std::string(9000, 'x')), "");
}

TEST(TimingTrailerTest, AnErrorIsCutBetweenCharacters) {
  ScopeTree tree("dump");
  std::string error(255, 'x');
  error += "ä and more";
  tree.fail(error);
  EXPECT_EQ(parsed(timing_trailer(tree, "")).scopes(0).error(), std::string(255, 'x'));
}

}  // namespace
}  // namespace kymo::daemon
