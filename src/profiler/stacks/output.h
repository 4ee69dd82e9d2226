#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/stacks/named_profile.h"
#include "profiler/stacks/profile.h"
#include "profiler/stacks/symbols.h"

// A profile in the formats that people and other programs read.
namespace kymo::stacks {

// The root frame of a stack whose outermost frames are missing.
inline constexpr const char* kTruncated = "[truncated]";

// The beginnings of comments in a file of pprof: how many samples were lost, and the name of a
// phase, one for each phase, in the order of time.
inline constexpr const char* kLostComment = "kymo: lost samples: ";
inline constexpr const char* kPhaseComment = "kymo: phase: ";

// One line for each stack, for flame graphs: "process;outermost;...;innermost VALUE". Functions of
// the kernel end in "_[k]". The value is the number of samples, microseconds of
// waiting or delay, or bytes.
std::string folded(const NamedProfile& profile);
std::string folded(const Profile& profile, Symbols& symbols);

// The format of pprof: a Profile of profile.proto, compressed by gzip. The labels of a sample are
// the process, its pid, the thread, and the container, phase and role if there is one. Comments
// have the number of lost samples, and the names of phases.
std::string pprof(const Profile& profile, Symbols& symbols);
// The same of a profile whose functions have names, without addresses, lines, pids and threads.
std::string pprof(const NamedProfile& profile, std::int64_t begin_unix_ns);

struct HotFunction {
  std::string name;
  std::string module;  // the path of the first one that has a function of this name
  Weight self;         // stacks whose innermost function it is
  Weight total;        // stacks that it is in, each counted once
};

struct Hottest {
  std::vector<HotFunction> functions;  // the hottest first
  Weight sum;                          // of all stacks
  std::uint64_t frames = 0;            // of all samples
  std::uint64_t unknown_frames = 0;    // of them, those without a name
  std::uint64_t truncated = 0;         // samples
};

enum class Order : std::uint8_t { self, total };

Hottest hottest(const NamedProfile& profile, Order order = Order::self);

}  // namespace kymo::stacks
