#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"
#include "profiler/stacks/profile.h"
#include "profiler/stacks/quantity.h"
#include "profiler/stacks/symbols.h"

namespace kymo::stacks {

// The largest value of a stack, and the largest time, that a reader of profiles gives. A larger one
// becomes this one, so that sums of values stay exact as numbers of JSON.
inline constexpr std::uint64_t kMaxStackValue = std::uint64_t{1} << 48U;
// The most frames, in all stacks, of a file that a reader of profiles accepts.
inline constexpr std::size_t kMaxFramesOfFile = std::size_t{1} << 25U;

// A stack profile whose functions have their names: one that was just taken, or one from a file.
struct NamedProfile {
  struct Function {
    std::string name;
    std::string module;  // a path, or as in Location
    bool known = true;   // otherwise the name is that of the module
  };
  struct Stack {
    std::string process;
    std::vector<std::uint32_t> functions;  // innermost first, inlined ones too
    bool truncated = false;
    Weight weight;
    std::string phase{};  // of a dump or restore, as in Trace
    std::string role{};
    std::string service{};  // of a profile that is kept, as in Trace
  };

  Quantity quantity = Quantity::cpu;
  std::uint64_t period_ns =
      0;  // between samples of a CPU; 0 if it is not known, or of another quantity
  std::uint64_t duration_ns = 0;
  std::uint64_t lost = 0;           // samples, as far as it is known
  bool counts_samples = true;       // otherwise each stack's number of samples is 1
  std::vector<std::string> phases;  // of a dump or restore, in the order in which they began
  std::vector<Function> functions;
  std::vector<Stack> stacks;

  // Adds a phase at the end, unless it is there.
  void add_phase(const std::string& name);
  [[nodiscard]] Weight sum() const;
};

NamedProfile named(const Profile& profile, Symbols& symbols);

// Reads a profile in the format of pprof, compressed by gzip or not. The bytes may be anything.
// `wanted`: which of its quantities is read. Without it, that is the default that the file names
//           or, if the file names none that is known here, the first one in Quantity that it has.
//
// Errors: data_loss: they are no such profile; failed_precondition: it does not have the quantity, or is
//         larger than what is read (512 MiB without compression, kMaxFramesOfFile).
// Cost:   memory for the bytes without compression, up to ten times as much for their messages, and eight bytes
//         a frame. The messages of a malicious file may take fifty times as much: read it in a confined process.
Result<NamedProfile> read_pprof(const std::string& bytes, const std::string& path,
                                std::optional<Quantity> wanted = {});

// Reads stacks in the folded format, "process;outermost;...;innermost VALUE", one a line. Lines that begin with # are
// comments. The bytes may be anything. The format does not say what the values are: they are taken for those that
// folded() writes of `quantity`. Of CPU time these are numbers of samples, so the time is not known and is 0.
//
// Errors: data_loss: which line is no stack; failed_precondition: more than kMaxFramesOfFile.
Result<NamedProfile> read_folded(std::string_view text, const std::string& path, Quantity quantity);
// Whether a file of this name is in the folded format.
bool is_folded(std::string_view path);

// The names of the phases that its stacks have, in the order in which they began; those whose order is
// not known come last.
std::vector<std::string> phases_in(const NamedProfile& profile);

// The stacks of one phase.
NamedProfile of_phase(const NamedProfile& profile, const std::string& phase);

// Adds the stacks and the duration of another profile.
// Errors: failed_precondition: they are of different quantities.
Result<void> add(NamedProfile& to, const NamedProfile& profile);

}  // namespace kymo::stacks
