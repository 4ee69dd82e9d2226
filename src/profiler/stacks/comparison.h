#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "profiler/stacks/frame_tree.h"
#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/profile.h"
#include "profiler/stacks/share_test.h"

namespace kymo::stacks {

// How the share of a function or frame changed from one profile to another. The page of a
// comparison has the numbers (src/lens/pages/flame_diff.js).
enum class ShareVerdict : std::uint8_t {
  within_noise,
  grew,
  shrank,
  is_new,      // only the second profile has it
  vanished,    // only the first one has it
  not_tested,  // the shares differ, and it is not known whether this is more than noise
};
const char* to_string(ShareVerdict verdict);

// The verdict is about the numbers of samples, and so are the shares. Of waiting, the shares are of
// the time, and nothing is tested: the number of waits says nothing of how long they were, and a
// profile has only the sum of their times.
struct ShareChange {
  Weight before;
  Weight after;
  double share_before = 0;  // of all stacks
  double share_after = 0;
  std::optional<ShareP> p;  // nothing if it was not tested
  ShareVerdict verdict = ShareVerdict::within_noise;

  [[nodiscard]] double difference() const { return share_after - share_before; }
  [[nodiscard]] bool beyond_noise() const {
    return verdict != ShareVerdict::within_noise && verdict != ShareVerdict::not_tested;
  }
};

struct FunctionChange {
  std::string name;
  std::string module;
  ShareChange self;   // stacks whose innermost function it is
  ShareChange total;  // stacks that it is in, each counted once
};

struct Comparison {
  struct Side {
    Weight sum;
    std::uint64_t duration_ns = 0;
    std::uint64_t lost = 0;
  };

  Quantity quantity = Quantity::cpu;
  bool by_value =
      false;  // shares are of the values: of all but CPU time, or where no samples are counted
  Side before;
  Side after;
  std::size_t tests = 0;  // for whose number p was corrected
  std::vector<FunctionChange> functions;
};

// Compares each function's own and total share (share_test.h).
// Errors: failed_precondition: they are of different quantities, or one has no stacks.
// Cost:   one step for each frame of a stack, and a test for each function.
Result<Comparison> compare(const NamedProfile& before, const NamedProfile& after);

// The stacks of both profiles as one tree, and what became of each frame. p is corrected for the
// number of frames in the tree.
struct ComparedTree {
  FrameTree tree;  // its first functions are those of Comparison, in their order
  std::vector<ShareVerdict> verdicts;  // for each node
  std::size_t tests = 0;
};
ComparedTree compared_tree(const NamedProfile& before, const NamedProfile& after);

}  // namespace kymo::stacks
