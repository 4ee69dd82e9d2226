#include "checkpoint/diagnosis/change.h"

#include <gtest/gtest.h>

namespace kymo::diagnosis {
namespace {

using Lines = std::vector<std::string>;

constexpr std::uint64_t kMsInNs = 1'000'000;
constexpr std::uint64_t kOneMiB = 1U << 20U;

// A dump whose processes stood still for 200 ms plus the time of writing pages.
DumpFacts dump(std::uint64_t writing_ms, std::uint64_t mib) {
  const std::uint64_t end_ms = 300 + writing_ms;
  DumpFacts facts;
  facts.frozen_ns = (200 + writing_ms) * kMsInNs;
  facts.bytes = mib * kOneMiB;
  facts.phases = {
      {"prepare", 0, 100 * kMsInNs, 0, "", false},
      {"collect", 100 * kMsInNs, 200 * kMsInNs, 0, "", true},
      {"memory: writing pages", 200 * kMsInNs, end_ms * kMsInNs - 100 * kMsInNs, 0, "", true},
      {"resume or end", end_ms * kMsInNs - 100 * kMsInNs, end_ms * kMsInNs, 0, "", true},
      {"finish", end_ms * kMsInNs, (end_ms + 5000) * kMsInNs, 0, "", false}};
  return facts;
}

TEST(ExplainChange, NamesThePhaseAndTheWaitThatGrewWithIt) {
  DumpFacts a = dump(300, 256);
  a.shares = {{"cpu", 0.5}, {"cpu_wait", 0.04}};
  DumpFacts b = dump(1000, 256);
  b.shares = {{"cpu", 0.21}, {"cpu_wait", 0.52}};
  EXPECT_EQ(explain_change(a, b),
            (Lines{"In B the processes stood still for 1.20 s, 700 ms longer than in A (500 ms).",
                   "Most of that: memory: writing pages, 1 s after 300 ms (+700 ms).",
                   "CRIU waited for a CPU for 4 % of the standstill in A, for 52 % in B."}));
  EXPECT_EQ(explain_change(b, a),
            (Lines{"In B the processes stood still for 500 ms, 700 ms shorter than in A (1.20 s).",
                   "Most of that: memory: writing pages, 300 ms after 1 s (-700 ms).",
                   "CRIU waited for a CPU for 52 % of the standstill in A, for 4 % in B."}));
}

TEST(ExplainChange, MoreMemoryIsTheReasonWhateverElseGrew) {
  DumpFacts a = dump(300, 256);
  a.shares = {{"disk_wait", 0.5}};
  DumpFacts b = dump(800, 512);
  b.shares = {{"disk_wait", 0.5}};
  EXPECT_EQ(explain_change(a, b).back(), "B wrote 512 MiB of memory, A 256 MiB.");
  b.bytes = 260 * kOneMiB;  // a little more memory does not explain twice the time
  EXPECT_EQ(explain_change(a, b).back(),
            "CRIU waited for the disk for 50 % of the standstill in A, for 50 % in B.");
}

// In a streamed dump kymod writes the images. Its waits were never named.
TEST(ExplainChange, NamesTheWaitsOfKymod) {
  DumpFacts a = dump(300, 256);
  a.shares = {{"cpu", 0.5}, {"cpu_wait", 0.02}, {"disk_wait", 0}, {"kymod_disk_wait", 0.02}};
  DumpFacts b = dump(1000, 256);
  b.shares = {{"cpu", 0.2}, {"cpu_wait", 0.02}, {"disk_wait", 0}, {"kymod_disk_wait", 0.68}};
  EXPECT_EQ(explain_change(a, b).back(),
            "kymod waited for the disk for 2 % of the standstill in A, for 68 % in B.");
  a.shares = {{"cpu_wait", 0.02}, {"target_cpu_wait", 0}, {"kymod_cpu_wait", 0}};
  b.shares = {{"cpu_wait", 0.19}, {"target_cpu_wait", 0.2}, {"kymod_cpu_wait", 0.38}};
  EXPECT_EQ(explain_change(a, b).back(),
            "kymod waited for a CPU for 0 % of the standstill in A, for 38 % in B.");
  a.shares.emplace_back("no_cpu", 0.02);
  b.shares.emplace_back("no_cpu", 0.6);  // they waited partly at the same time
  EXPECT_EQ(
      explain_change(a, b).back(),
      "No CPU was free for CRIU, the target or kymod for 2 % of the standstill in A, for 60 % in "
      "B.");
  for (const char* share :
       {"no_cpu", "kymod_disk_wait", "kymod_cpu_wait", "target_cpu_wait", "compression"}) {
    EXPECT_NE(state_words(share), "") << share;
  }
}

criu::MemoryShape shape_of(std::uint64_t mappings, std::uint64_t runs) {
  return {.mappings = mappings, .runs = runs};
}

TEST(ExplainChange, NamesMappingsAndPieces) {
  DumpFacts a = dump(10, 7);
  a.shares = {{"cpu", 0.5}};
  a.shape = shape_of(120, 40);
  DumpFacts b = dump(10, 7);
  b.frozen_ns += 150 * kMsInNs;
  b.phases[1].end_ns += 150 * kMsInNs;  // "collect"
  b.shares = {{"cpu", 0.9}};
  b.shape = shape_of(15'120, 40);
  EXPECT_EQ(explain_change(a, b).back(), "B has 15,120 mappings, A 120.");
  b.bytes *= 9;  // their pages, which did not take most of the time
  EXPECT_EQ(explain_change(a, b).back(), "B has 15,120 mappings, A 120.");
  b.bytes = a.bytes;
  b.shape = shape_of(120, 100'040);
  EXPECT_EQ(explain_change(a, b).back(), "B has 100,040 separate pieces of memory, A 40.");
  b.shape = a.shape;
  EXPECT_EQ(explain_change(a, b).back(),
            "CRIU used a CPU for 50 % of the standstill in A, for 90 % in B.");
}

TEST(ExplainChange, WhatWasNotLookedAtInBothIsNoReason) {
  DumpFacts a = dump(300, 256);
  DumpFacts b = dump(1000, 256);
  b.shares = {{"cpu_wait", 0.52}};
  EXPECT_EQ(explain_change(a, b).size(), 2U);
  a.shares = {{"cpu_wait", 0.52}};
  b.shares = {{"cpu_wait", 0.1}};  // a smaller time than in A
  EXPECT_EQ(explain_change(a, b).size(), 2U);
}

TEST(ExplainChange, WhatIsWithinNoiseIsNotExplained) {
  EXPECT_EQ(explain_change(dump(1000, 256), dump(1010, 256)),
            (Lines{"The processes stood still for about as long: 1.20 s in A, 1.21 s in B."}));
}

TEST(ExplainChange, WithoutATimeNothingIsSaid) {
  EXPECT_EQ(explain_change(dump(1000, 256), DumpFacts()), Lines());
  DumpFacts no_phases = dump(1000, 256);
  no_phases.phases.clear();
  EXPECT_EQ(explain_change(dump(100, 256), no_phases).size(), 1U)
      << "a dump without phases must not get any";
}

}  // namespace
}  // namespace kymo::diagnosis
