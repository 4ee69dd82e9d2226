#include "lens/report/profile_diff.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lens/report/flame_diff.h"

namespace kymo::report {
namespace {

using stacks::FunctionChange;
using stacks::ShareVerdict;
using Outcome = ChangeCheck::Outcome;

// A function whose own share changes from 10 % to `after`. Its total share does not change.
FunctionChange function_with(const std::string& name, double after, ShareVerdict verdict) {
  FunctionChange function{name, "/usr/bin/app", {}, {}};
  function.self.share_before = 0.1;
  function.self.share_after = after;
  function.self.verdict = verdict;
  return function;
}

ShareCheck checked(const std::vector<FunctionChange>& functions, double allowed) {
  static stacks::Comparison comparison;  // static, because the result refers to it
  comparison.functions = functions;
  return check_shares(comparison, allowed);
}

TEST(ShareCheckTest, OnlyAChangeBeyondNoiseAndBeyondTheLimitCounts) {
  const std::vector<FunctionChange> functions{
      function_with("grew", 0.13, ShareVerdict::grew),
      function_with("noise", 0.3, ShareVerdict::within_noise)};
  EXPECT_EQ(checked(functions, 0.02).outcome, Outcome::changed);
  EXPECT_EQ(checked(functions, 0.02).changed.at(0)->name, "grew");
  EXPECT_EQ(checked(functions, 0.04).outcome, Outcome::no_change);
}

TEST(ShareCheckTest, BothDirectionsCountAndTheLargestIsFirst) {
  const ShareCheck check = checked({function_with("grew", 0.13, ShareVerdict::grew),
                                    function_with("vanished", 0, ShareVerdict::vanished)},
                                   0.02);
  ASSERT_EQ(check.changed.size(), 2U);
  EXPECT_EQ(check.changed[0]->name, "vanished");
}

TEST(ShareCheckTest, ATotalShareCounts) {
  FunctionChange caller{"caller", "/usr/bin/app", {}, {}};
  caller.total.share_after = 0.5;
  caller.total.verdict = ShareVerdict::is_new;
  EXPECT_EQ(checked({caller}, 0.02).outcome, Outcome::changed);
}

TEST(ShareCheckTest, WhatWasNotTestedCannotBeToldUnlessSomethingChanged) {
  const FunctionChange undecided = function_with("few", 0.4, ShareVerdict::not_tested);
  EXPECT_EQ(checked({undecided}, 0.02).outcome, Outcome::cannot_tell);
  EXPECT_EQ(checked({undecided}, 0.5).outcome, Outcome::no_change);
  EXPECT_EQ(checked({undecided, function_with("grew", 0.13, ShareVerdict::grew)}, 0.02).outcome,
            Outcome::changed);
}

// Before, the title of the page was "cpu.pb.gz → cpu.pb.gz".
TEST(FlameDiffTest, FilesOfTheSameNameAreToldApartByTheirFolders) {
  EXPECT_EQ(flame_diff_title("/a/before.pb.gz", "/a/after.pb.gz"), "before.pb.gz → after.pb.gz");
  EXPECT_EQ(flame_diff_title("/p/old/cpu.pb.gz", "/p/new/cpu.pb.gz"),
            "old/cpu.pb.gz → new/cpu.pb.gz");
  EXPECT_EQ(flame_diff_title("cpu.pb.gz", "new/cpu.pb.gz"), "cpu.pb.gz → new/cpu.pb.gz");
  EXPECT_EQ(flame_diff_title("/cpu.pb.gz", "/new/cpu.pb.gz"), "/cpu.pb.gz → new/cpu.pb.gz");
  EXPECT_EQ(flame_diff_title("/p/cpu.pb.gz", "/p/cpu.pb.gz"), "/p/cpu.pb.gz → /p/cpu.pb.gz");
  EXPECT_EQ(flame_diff_title("", "x"), " → x");
}

}  // namespace
}  // namespace kymo::report
