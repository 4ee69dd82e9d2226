#include "profiler/stacks/named_profile.h"

#include <gtest/gtest.h>

#include <string>

#include "profiler/stacks/output.h"

namespace kymo::stacks {
namespace {

// The bytes that pprof() writes for a small profile.
std::string written(bool waits = false) {
  Module one;
  one.path = "/usr/bin/one";
  Module other;
  other.path = "/usr/lib/other.so";
  Trace trace;
  trace.process = "web";
  trace.thread = "worker";
  trace.frames = {{&one, 1}, {&other, 2}, {nullptr, 3}};
  Profile profile;
  profile.waits = waits;
  profile.period_ns = waits ? 0 : 10;
  profile.duration_ns = 1000;
  profile.traces[trace] = {3, 30};
  trace.truncated = true;
  profile.traces[trace] = {4, 40};
  Symbols symbols;
  return pprof(profile, symbols);
}

TEST(NamedProfileTest, OneThatWasReadIsWrittenAndReadAgain) {
  NamedProfile first = read_pprof(written(), "x.pb.gz").value();
  first.lost = 5;
  first.phases = {"dump", "write"};
  first.stacks[0].phase = "write";
  first.stacks[0].role = "criu";
  first.stacks[1].service = "job:web";
  const Result<NamedProfile> read = read_pprof(pprof(first, 7), "y.pb.gz");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->period_ns, first.period_ns);
  EXPECT_EQ(read->duration_ns, first.duration_ns);
  EXPECT_EQ(read->lost, 5U);
  EXPECT_EQ(read->phases, first.phases);
  ASSERT_EQ(read->stacks.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const NamedProfile::Stack& before = first.stacks[i];
    const NamedProfile::Stack& after = read->stacks[i];
    EXPECT_EQ(after.process, before.process);
    EXPECT_EQ(after.phase, before.phase);
    EXPECT_EQ(after.role, before.role);
    EXPECT_EQ(after.service, before.service);
    EXPECT_EQ(after.truncated, before.truncated);
    EXPECT_EQ(after.weight.samples, before.weight.samples);
    EXPECT_EQ(after.weight.value, before.weight.value);
    ASSERT_EQ(after.functions.size(), before.functions.size());
    for (std::size_t n = 0; n < after.functions.size(); ++n) {
      const NamedProfile::Function& one = first.functions[before.functions[n]];
      const NamedProfile::Function& same = read->functions[after.functions[n]];
      EXPECT_EQ(same.name, one.name);
      EXPECT_EQ(same.module, one.module);
      EXPECT_EQ(same.known, one.known);
    }
  }
}

TEST(NamedProfileTest, WhatPprofWritesIsReadAgain) {
  const Result<NamedProfile> read = read_pprof(written(), "x.pb.gz");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->quantity, Quantity::cpu);
  EXPECT_EQ(read->period_ns, 10U);
  EXPECT_EQ(read->duration_ns, 1000U);
  ASSERT_EQ(read->stacks.size(), 2U);
  for (const NamedProfile::Stack& stack : read->stacks) {
    EXPECT_EQ(stack.process, "web");
    EXPECT_EQ(stack.weight.samples, stack.truncated ? 4U : 3U);
    ASSERT_EQ(stack.functions.size(), 3U);
    const NamedProfile::Function& innermost = read->functions[stack.functions[0]];
    EXPECT_EQ(innermost.name, "[one]");
    EXPECT_EQ(innermost.module, "/usr/bin/one");
    EXPECT_FALSE(innermost.known);
    EXPECT_EQ(read->functions[stack.functions[2]].name, "[unknown]");
  }
  const Hottest hottest = stacks::hottest(*read);
  EXPECT_EQ(hottest.sum.value, 70U);
  EXPECT_EQ(hottest.truncated, 4U);
  EXPECT_EQ(hottest.unknown_frames, hottest.frames);
}

TEST(NamedProfileTest, TheSumOfTwoHasAllStacks) {
  Result<NamedProfile> sum = read_pprof(written(), "a");
  const Result<NamedProfile> other = read_pprof(written(), "b");
  ASSERT_TRUE(sum && other);
  ASSERT_TRUE(add(*sum, *other));
  EXPECT_EQ(sum->sum().samples, 14U);
  EXPECT_EQ(sum->duration_ns, 2000U);
  EXPECT_EQ(hottest(*sum).functions.front().self.samples, 14U);
  const Result<NamedProfile> waits = read_pprof(written(true), "c");
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->quantity, Quantity::wait);
  EXPECT_FALSE(add(*sum, *waits));
}

// Each of these files is cut or changed. A reader must neither accept it nor crash.
TEST(NamedProfileTest, DamagedBytesAreOneError) {
  const std::string good = written();
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Result<NamedProfile> read = read_pprof(good.substr(0, size), "cut");
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    (void)read_pprof(changed, "changed");
  }
  EXPECT_EQ(read_pprof("hello\n", "text").error().code, Code::data_loss);
}

TEST(NamedProfileTest, OtherValuesAreRefused) {
  // A profile with sample_type {type: 1, unit: 2} and string_table "", "space", "bytes".
  const std::string heap(
      "\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x05space\x32\x05"
      "bytes",
      22);
  const Result<NamedProfile> read = read_pprof(heap, "heap.pb");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "heap.pb has no values that kymo shows, but space in bytes");
}

}  // namespace
}  // namespace kymo::stacks
