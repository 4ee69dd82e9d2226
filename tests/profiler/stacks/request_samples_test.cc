#include "profiler/stacks/request_samples.h"

#include <gtest/gtest.h>

#include "profiler/stacks/collector.h"
#include "profiler/stacks/frame_tree.h"
#include "profiler/stacks/output.h"

namespace kymo::stacks {
namespace {

Trace trace_of(const char* role, const char* thread = "") {
  Trace trace;
  trace.role = role;
  trace.thread = thread;
  trace.frames = {{nullptr, 1}};
  return trace;
}

const std::vector<PhaseTimes> kPhases{
    {"freeze", 100, 200}, {"memory", 200, 300}, {"freeze", 300, 310}};

std::uint64_t samples_in(const Profile& profile, const std::string& phase) {
  std::uint64_t samples = 0;
  for (const auto& [trace, weight] : profile.traces) {
    if (trace.phase == phase) samples += weight.samples;
  }
  return samples;
}

TEST(RequestSamplesTest, EachSampleGetsTheNameOfThePhaseOfItsInstant) {
  RequestSamples samples;
  for (const std::uint64_t time_ns : {100U, 199U, 200U, 299U, 300U}) {
    samples.add(trace_of(kCriuRole), time_ns);
  }
  Profile profile;
  profile.period_ns = 10;
  samples.move_to(profile, kPhases);
  EXPECT_EQ(samples_in(profile, "freeze"), 3U);
  EXPECT_EQ(samples_in(profile, "memory"), 2U);
  EXPECT_EQ(profile.sum().value, 50U);
  EXPECT_EQ(profile.phases, (std::vector<std::string>{"freeze", "memory"}));
}

TEST(RequestSamplesTest, WhatIsOutsideOfThePhasesBelongsToTheNextOne) {
  RequestSamples samples;
  samples.add(trace_of(kCriuRole), 5);
  samples.add(trace_of(kCriuRole), 1000);
  Profile profile;
  samples.move_to(profile, {{"first", 100, 200}, {"last", 200, 300}});
  EXPECT_EQ(samples_in(profile, "first"), 1U);
  EXPECT_EQ(samples_in(profile, "last"), 1U);
}

TEST(RequestSamplesTest, WithoutPhasesNoSampleHasOne) {
  RequestSamples samples;
  samples.add(trace_of(kTargetRole), 5);
  Profile profile;
  samples.move_to(profile, {});
  EXPECT_EQ(samples_in(profile, ""), 1U);
}

// The phases, their order, the roles and the lost samples must be in the file.
TEST(RequestSamplesTest, AFileHasThePhasesAndTheRoles) {
  RequestSamples samples;
  samples.add(trace_of(kTargetRole), 310);
  samples.add(trace_of(kCriuRole), 210);
  Profile profile;
  profile.period_ns = 10;
  profile.counts.lost = 7;
  samples.move_to(profile, kPhases);
  Symbols symbols;
  const Result<NamedProfile> read = read_pprof(pprof(profile, symbols), "x.pb.gz");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->lost, 7U);
  EXPECT_EQ(phases_in(*read), (std::vector<std::string>{"freeze", "memory"}));
  const NamedProfile memory = of_phase(*read, "memory");
  ASSERT_EQ(memory.stacks.size(), 1U);
  EXPECT_EQ(memory.stacks[0].role, kCriuRole);
  const FrameTree tree = frame_tree(memory);
  EXPECT_EQ(tree.functions[tree.nodes[0].function].name, "CRIU");
}

// A file can have any number of labels, so the number of phases that are shown is limited.
TEST(RequestSamplesTest, OfAFileWithTooManyPhasesTheRestHaveNone) {
  constexpr std::size_t kMax = 1000;
  Profile profile;
  profile.period_ns = 10;
  for (std::size_t i = 0; i < kMax + 5; ++i) {
    Trace trace = trace_of(kCriuRole);
    trace.phase = "phase " + std::to_string(i);
    profile.traces[trace] = {1, 10};
    profile.phases.push_back(trace.phase);
  }
  Symbols symbols;
  const Result<NamedProfile> read = read_pprof(pprof(profile, symbols), "x.pb.gz");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(phases_in(*read).size(), kMax);
  EXPECT_EQ(of_phase(*read, "").sum().samples, 5U);
}

TEST(CollectorTextTest, OrdersAndPhasesAreReadAsTheyWereWritten) {
  CollectorOrder order;
  order.rate = 250;
  order.starter = 17;
  order.target = {1, 2};
  order.restored = {3};
  order.container = true;
  order.restored_container = "web";
  order.output = "/a \"b\"\n/dump.pb.gz";
  const std::string line = order_text(order);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "the error must be one line";
  const auto read = order_in(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(order_text(*read), line);
  EXPECT_EQ(read->output, order.output);
  const auto phases = phases_in(phases_text(kPhases));
  ASSERT_TRUE(phases);
  EXPECT_EQ(phases_text(*phases), phases_text(kPhases));
  for (const char* other : {"", "{}", "[]", "{\"rate\": \"x\"}", "{\"phases\": [[1, 2, 3]]}"}) {
    EXPECT_FALSE(order_in(other)) << other;
    EXPECT_FALSE(phases_in(other)) << other;
  }
}

}  // namespace
}  // namespace kymo::stacks
