#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/criu/images/memory_shape.h"
#include "checkpoint/diagnosis/phases.h"

namespace kymo::diagnosis {

// What is known of one of two dumps that are compared.
struct DumpFacts {
  std::uint64_t frozen_ns = 0;                         // 0: not known
  std::uint64_t bytes = 0;                             // of memory that was written; 0: not known
  std::vector<Phase> phases;                           // of the request, or of CRIU's log alone
  std::vector<std::pair<std::string, double>> shares;  // Verdict::shares; empty: nobody looked
  std::optional<criu::MemoryShape> shape;              // nothing: not known
};

// The words for a share of Verdict::shares, such as "CRIU: waited for the disk" or "kymod: waited for a CPU". Empty if no share has this
// name.
std::string state_words(std::string_view share);
// Whether these are the words of a share.
bool is_state(std::string_view words);

// Says in plain words why the processes stood still longer, or shorter, in dump B than in dump A:
// the times, the phase that made most of the difference, and what grew with it (the memory that was
// written, the number of its mappings or pieces, or what CRIU or kymod waited for). At most three lines. None if a time is not known.
std::vector<std::string> explain_change(const DumpFacts& a, const DumpFacts& b);

}  // namespace kymo::diagnosis
