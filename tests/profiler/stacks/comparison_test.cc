#include "profiler/stacks/comparison.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace kymo::stacks {
namespace {

// A profile of a program with the functions main, work, copy, old and fresh.
constexpr std::uint32_t kMain = 0;
constexpr std::uint32_t kWork = 1;
constexpr std::uint32_t kCopy = 2;
constexpr std::uint32_t kOld = 3;
constexpr std::uint32_t kFresh = 4;

NamedProfile profile_with(const std::vector<std::pair<std::vector<std::uint32_t>, std::uint64_t>>&
                              stacks,  // stacks, the innermost function first, and their samples
                          const std::string& folder = "/v1") {
  NamedProfile profile;
  profile.period_ns = 10;
  for (const char* name : {"main", "work", "copy", "old", "fresh"}) {
    profile.functions.push_back({name, folder + "/app", true});
  }
  for (const auto& [functions, samples] : stacks) {
    profile.stacks.push_back({"app", functions, false, {samples, samples * 10}});
  }
  return profile;
}

// Each profile has 1000 samples. By hand: `work` has 500 and 600 of its own, `copy` 200 and 195 (called
// by work), `old` 100 and 0, `fresh` 0 and 100, and `main` has the rest.
NamedProfile first() {
  return profile_with(
      {{{kWork, kMain}, 500}, {{kCopy, kWork, kMain}, 200}, {{kOld, kMain}, 100}, {{kMain}, 200}});
}
NamedProfile second() {
  return profile_with(
      {{{kWork, kMain}, 600}, {{kCopy, kWork, kMain}, 195}, {{kFresh, kMain}, 100}, {{kMain}, 105}},
      "/v2");
}

std::map<std::string, FunctionChange> by_name(const Comparison& comparison) {
  std::map<std::string, FunctionChange> all;
  for (const FunctionChange& function : comparison.functions) all[function.name] = function;
  return all;
}

TEST(ComparisonTest, CountsSharesAndVerdictsAreThoseMadeByHand) {
  const Result<Comparison> comparison = compare(first(), second());
  ASSERT_TRUE(comparison) << comparison.error().message;
  EXPECT_EQ(comparison->before.sum.samples, 1000U);
  EXPECT_EQ(comparison->after.sum.value, 10000U);
  EXPECT_FALSE(comparison->by_value);
  auto functions = by_name(*comparison);
  ASSERT_EQ(functions.size(), 5U);
  EXPECT_EQ(functions["work"].self.before.samples, 500U);
  EXPECT_EQ(functions["work"].self.after.value, 6000U);
  EXPECT_DOUBLE_EQ(functions["work"].self.share_before, 0.5);
  EXPECT_DOUBLE_EQ(functions["work"].self.share_after, 0.6);
  EXPECT_DOUBLE_EQ(functions["work"].total.share_before, 0.7);
  EXPECT_DOUBLE_EQ(functions["work"].total.share_after, 0.795);
  EXPECT_EQ(functions["work"].self.verdict, ShareVerdict::grew);
  EXPECT_EQ(functions["work"].total.verdict, ShareVerdict::grew);
  EXPECT_EQ(functions["copy"].self.verdict, ShareVerdict::within_noise);
  EXPECT_EQ(functions["old"].self.verdict, ShareVerdict::vanished);
  EXPECT_EQ(functions["fresh"].total.verdict, ShareVerdict::is_new);
  EXPECT_EQ(functions["main"].self.verdict, ShareVerdict::shrank);
  EXPECT_EQ(functions["main"].total.verdict, ShareVerdict::within_noise);
  EXPECT_EQ(functions["main"].module, "/v2/app");
}

TEST(ComparisonTest, PIsCorrectedForBothSharesOfAllFunctions) {
  const Result<Comparison> comparison = compare(first(), second());
  ASSERT_TRUE(comparison);
  auto functions = by_name(*comparison);
  // The tests are five own shares and four total shares. All stacks have main, so its total share cannot
  // change.
  EXPECT_EQ(comparison->tests, 9U);
  EXPECT_FALSE(functions["main"].total.p);
  // Computed in Python, as in share_test_test.cc: p is 0.82226 for both shares of copy, and 8.4537e-06
  // for the own share of work, which is the highest p of the other seven. So Holm's correction
  // multiplies it by 3.
  ASSERT_TRUE(functions["copy"].self.p);
  EXPECT_NEAR(functions["copy"].self.p->p, 0.8222614898826085, 1e-9);
  ASSERT_TRUE(functions["work"].self.p);
  EXPECT_NEAR(functions["work"].self.p->adjusted_p, 3 * 8.453719674485641e-06, 1e-12);
}

TEST(ComparisonTest, AFunctionThatCallsItselfCountsOnce) {
  const Result<Comparison> comparison =
      compare(profile_with({{{kWork, kWork, kMain}, 50}, {{kMain}, 50}}),
              profile_with({{{kWork, kCopy, kWork, kMain}, 10}, {{kMain}, 90}}));
  ASSERT_TRUE(comparison);
  auto functions = by_name(*comparison);
  EXPECT_EQ(functions["work"].total.before.samples, 50U);
  EXPECT_EQ(functions["work"].total.after.samples, 10U);
  EXPECT_EQ(functions["work"].self.after.samples, 10U);
}

TEST(ComparisonTest, TooFewSamplesAreNotTested) {
  const Result<Comparison> comparison =
      compare(profile_with({{{kWork, kMain}, 3}}), profile_with({{{kCopy, kMain}, 2}}));
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->tests, 0U);
  EXPECT_EQ(by_name(*comparison)["work"].self.verdict, ShareVerdict::not_tested);
  EXPECT_EQ(by_name(*comparison)["main"].self.verdict, ShareVerdict::within_noise);
}

TEST(ComparisonTest, WaitsAreComparedByTheirTimeAndNotTested) {
  NamedProfile before = first();
  NamedProfile after = second();
  before.quantity = after.quantity = Quantity::wait;
  before.stacks[0].weight.value = 95000;  // of 100000: the other stacks have 5000
  const Result<Comparison> comparison = compare(before, after);
  ASSERT_TRUE(comparison);
  EXPECT_TRUE(comparison->by_value);
  EXPECT_EQ(comparison->tests, 0U);
  const FunctionChange work = by_name(*comparison)["work"];
  EXPECT_DOUBLE_EQ(work.self.share_before, 0.95);
  EXPECT_EQ(work.self.verdict, ShareVerdict::not_tested);
  EXPECT_FALSE(work.self.p);
}

TEST(ComparisonTest, AProfileThatDoesNotCountItsSamplesIsNotTested) {
  NamedProfile before = first();
  before.counts_samples = false;
  const Result<Comparison> comparison = compare(before, second());
  ASSERT_TRUE(comparison);
  EXPECT_TRUE(comparison->by_value);
  EXPECT_EQ(by_name(*comparison)["work"].self.verdict, ShareVerdict::not_tested);
}

TEST(ComparisonTest, WhatCannotBeComparedIsRefused) {
  NamedProfile waits = first();
  waits.quantity = Quantity::wait;
  EXPECT_EQ(compare(first(), waits).error().message,
            "cannot compare: A is a profile of CPU time and B one of waiting; give two of the same "
            "kind");
  EXPECT_EQ(compare(profile_with({}), second()).error().message,
            "cannot compare: A has no stacks; profile for longer");
  EXPECT_EQ(compare(first(), profile_with({})).error().code, Code::failed_precondition);
}

using ComparedRow =
    std::tuple<std::uint32_t, std::string, std::uint64_t, std::uint64_t, ShareVerdict>;

std::vector<ComparedRow> compared_rows(const ComparedTree& compared) {
  std::vector<ComparedRow> rows;
  for (std::size_t i = 0; i < compared.tree.nodes.size(); ++i) {
    const FrameTree::Node& node = compared.tree.nodes[i];
    rows.emplace_back(node.depth, compared.tree.functions[node.function].name, node.self_before,
                      node.self, compared.verdicts[i]);
  }
  return rows;
}

TEST(ComparedTreeTest, HasTheStacksOfBothAndWhatBecameOfEachFrame) {
  using enum ShareVerdict;
  NamedProfile renamed = second();
  for (NamedProfile::Stack& stack : renamed.stacks) stack.process = "app-2";
  const ComparedTree compared = compared_tree(first(), renamed);
  EXPECT_EQ(compared_rows(compared),
            (std::vector<ComparedRow>{{0, "app-2", 0, 0, within_noise},
                                      {1, "main", 200, 105, within_noise},
                                      {2, "fresh", 0, 100, is_new},
                                      {2, "old", 100, 0, vanished},
                                      {2, "work", 500, 600, grew},
                                      {3, "copy", 200, 195, within_noise}}));
  EXPECT_EQ(compared.tests, 4U);
  EXPECT_EQ(compared.tree.scale, 10U);
  const Result<Comparison> comparison = compare(first(), renamed);
  ASSERT_TRUE(comparison);
  for (std::size_t i = 0; i < comparison->functions.size(); ++i) {
    EXPECT_EQ(compared.tree.functions[i].name, comparison->functions[i].name);
  }
}

TEST(ComparedTreeTest, SeveralProcessesAreNotTakenForEachOther) {
  NamedProfile two = second();
  two.stacks[0].process = "other";
  // Six rows as in the test above, and three more: `other`, its main and its work.
  EXPECT_EQ(compared_rows(compared_tree(first(), two)).size(), 9U);
}

}  // namespace
}  // namespace kymo::stacks
