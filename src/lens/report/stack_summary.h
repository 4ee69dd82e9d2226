#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/output.h"

namespace kymo::report {

// What the stack profile of a dump or restore says (docs/profiles.md), phase by phase.
struct StackSummary {
  struct Part {
    stacks::Weight weight;
    std::vector<stacks::HotFunction> hottest;  // by their own time, at most `functions`
  };
  struct PhaseStacks {
    std::string phase;  // empty: samples without a phase
    stacks::Weight weight;
    Part criu;
    Part target;
  };

  std::string name;             // of the recording that it belongs to, such as "dump"
  std::uint64_t period_ns = 0;  // between samples of a CPU
  std::uint64_t lost = 0;
  std::vector<PhaseStacks> phases;  // those with samples, in the order of time
};

// With fewer samples than this, the shares of functions are a matter of chance, and a table is
// shown instead of a flame graph.
inline constexpr std::uint64_t kFewSamples = 30;

StackSummary summary_of(const stacks::NamedProfile& profile, std::size_t functions);

// The names of the stack profiles in the folder `recordings` of a checkpoint, without their ending,
// sorted.
std::vector<std::string> stack_profiles_in(const std::string& folder);

// Reads the stack profile NAME.pb.gz of a recording in a folder. To be called in a process without
// rights.
// Errors: not_found: it has none; those of stacks::read_pprof().
Result<stacks::NamedProfile> read_stacks(const std::string& folder, const std::string& name);

// Reads a stack profile in a folder, in the format of pprof or, by the ending of its name, of
// folded stacks. To be called in a process without rights.
// Errors: those of read_beneath(), stacks::read_pprof() and stacks::read_folded().
Result<stacks::NamedProfile> read_stack_file(const std::string& folder, const std::string& name,
                                             stacks::Quantity quantity);

// Reads and sums all stack profiles in the folder `recordings` of a checkpoint. Why one could not
// be read is appended to `notes`.
std::vector<StackSummary> stacks_of_checkpoint(const std::string& directory,
                                               std::vector<std::string>& notes);

// Text for a person.
std::string text_of(const StackSummary& summary);
nlohmann::json json_of(const StackSummary& summary);

}  // namespace kymo::report
