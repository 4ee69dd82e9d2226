#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/human.h"
#include "checkpoint/diagnosis/verdict.h"

namespace kymo::diagnosis {

inline constexpr double kNsPerSecond = 1e9;
inline constexpr double kPageBytes = 4096;
inline constexpr double kMiB = 1024.0 * 1024;
inline constexpr double kGiB = 1024 * kMiB;
inline constexpr std::uint64_t kNsPerMs = 1'000'000;
inline constexpr std::uint64_t kNsPerUs = 1000;
// How wrong a time of /proc/stat may be: the kernel counts it in steps of 10 ms, and it is read as often.
inline constexpr std::uint64_t kTicksUncertainNs = 20 * kNsPerMs;
// What a separate piece of memory adds to a dump, at least and at most: if the images are streamed, if CRIU writes them
// into files, and if it also logs each piece, as container runtimes ask for. Measured with 128 MiB in one piece and in
// single pages: 98 and 140 ms, 122 and 337 ms, 333 and 697 ms (bench/verdicts.py --only scattered).
struct PieceCost {
  double least_ns;
  double most_ns;
};
inline constexpr PieceCost kStreamedPiece{700, 1050};
inline constexpr PieceCost kWrittenPiece{6000, 7000};
inline constexpr PieceCost kLoggedPiece{11'000, 12'000};

using human::whole_percent;
// 0 if there is no whole.
double ratio(double part, double whole);

// What a share is of: "of the standstill" of a dump, or "of the dump" if nothing stood still, "of the restore".
std::string base_of(const Facts& facts);

// What is known of a request, as rules ask for it.
struct Known {
  const Facts& facts;
  Window window;

  [[nodiscard]] double length_ns() const { return static_cast<double>(window.length_ns()); }
  // The share of the window, at most 1; 0 if the time is not known.
  [[nodiscard]] double share(std::optional<std::uint64_t> ns) const;
  // The share of the window in phases that begin with this name.
  [[nodiscard]] double share_of_phase(std::string_view name) const;
  // The share of a dump in which neither CRIU nor the target ran, could run or waited for a disk,
  // and no phase explains it. 0 if that is not known.
  [[nodiscard]] double idle_share() const;
  // The share in which CRIU certainly did not work, because it had no CPU or was stopped.
  [[nodiscard]] double held_up_share() const;
  // The share in which CRIU waited because kymod itself did not run.
  [[nodiscard]] double late_share() const;
};

// The shares in which CRIU waited for somebody who had no CPU: the target of a dump, which is asked for its memory, or
// kymod, which takes the stream. CRIU itself is then not ready to run.
double share_of_starved_target(const Known& known);
double share_of_starved_kymod(const Known& known);
// The share in which CRIU, the target or kymod had no CPU. They may wait at the same time: it is at most what other
// programs had of the CPUs.
double share_of_starved(const Known& known);
// The part of it in which a limit of CPU time held them up, which the kernel counts as waiting, too.
double share_of_quota(const Known& known);

// The time that is left if the advice saves between these shares of it. Nothing if that is nothing.
std::optional<Range> left_after(const Known& known, double least, double most);

// The share in which kymod compressed; 0 if it is too small to be a cause.
double compression_share(const Known& known);

// Whether CRIU waited for an answer for so long that it is worth telling: 10 %, and 50 ms, because the start of a script
// takes some of them.
bool is_long_answer(const Known& known, double share);
inline constexpr char kOfAnswers[] = ", and 50 ms";

// Finds one cause. Nothing: it does not apply, or its signal was not looked at.
using Rule = std::optional<Cause> (*)(const Known&);

// CRIU waited for scripts or a runtime.
std::optional<Cause> hooks(const Known& known);

// Rules for times in which CRIU waited for something.
std::span<const Rule> wait_rules();
// Rules for times in which CRIU or the kernel worked.
std::span<const Rule> work_rules();

}  // namespace kymo::diagnosis
