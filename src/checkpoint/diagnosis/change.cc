#include "checkpoint/diagnosis/change.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "base/human.h"
#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/diagnosis/rules.h"

namespace kymo::diagnosis {
namespace {

// A smaller change is not explained: two dumps of the same process differ by as much.
constexpr double kMinChange = 0.05;
// What one mapping adds to a dump: 15,000 mappings of a page added 120 ms and more to the phase "collect".
constexpr double kNsAMapping = 8'000;
// What is named as the reason must have changed by this share of the whole change.
constexpr double kMinReason = 0.25;

// The share that is no wait.
constexpr std::string_view kOnCpu = "cpu";

// A part of the frozen time in both dumps, in nanoseconds.
struct Part {
  std::string name;
  double a_ns = 0;
  double b_ns = 0;
};

std::vector<Part> frozen_phases(const DumpFacts& a, const DumpFacts& b) {
  std::map<std::string, Part> by_name;
  for (const auto& [dump, time] : {std::pair(&a, &Part::a_ns), std::pair(&b, &Part::b_ns)}) {
    for (const Phase& phase : dump->phases) {
      if (!phase.frozen) continue;
      by_name[phase.name].name = phase.name;
      by_name[phase.name].*time += static_cast<double>(phase.duration_ns());
    }
  }
  std::vector<Part> parts;
  for (auto& [name, part] : by_name) parts.push_back(std::move(part));
  return parts;
}

// The names of Verdict::shares, in words.
struct State {
  std::string_view name;
  const char* sentence;
  const char* shortly;
};
constexpr std::array kStates = {
    State{"cpu", "CRIU used a CPU", "CRIU: used a CPU"},
    State{"cpu_wait", "CRIU waited for a CPU", "CRIU: waited for a CPU"},
    State{"no_cpu", "No CPU was free for CRIU, the target or kymod", "no CPU was free"},
    State{"quota", "A limit of CPU time held up CRIU, the target or kymod",
          "a limit of CPU time held it up"},
    State{"disk_wait", "CRIU waited for the disk", "CRIU: waited for the disk"},
    State{"kymod_disk_wait", "kymod waited for the disk", "kymod: waited for the disk"},
    State{"target_cpu_wait", "The target waited for a CPU", "target: waited for a CPU"},
    State{"kymod_cpu_wait", "kymod waited for a CPU", "kymod: waited for a CPU"},
    State{"compression", "kymod compressed the images", "kymod: compressed the images"},
    State{"target_wait", "CRIU waited for the target's answers", "CRIU: waited for the target"},
    State{"steal", "The hypervisor gave the CPUs to others", "CRIU: CPUs were stolen"}};

std::optional<double> share_named(const DumpFacts& dump, std::string_view name) {
  for (const auto& share : dump.shares) {
    if (share.first == name) return share.second;
  }
  return {};
}

// The time of a share in both dumps. Nothing if nobody looked in one of them.
std::optional<Part> part_of(std::string_view share, const DumpFacts& a, const DumpFacts& b) {
  const std::optional<double> in_a = share_named(a, share);
  const std::optional<double> in_b = share_named(b, share);
  if (!in_a || !in_b) return {};
  return Part{"", *in_a * static_cast<double>(a.frozen_ns),
              *in_b * static_cast<double>(b.frozen_ns)};
}

// Only what was looked at in both dumps.
std::vector<Part> wait_parts(const DumpFacts& a, const DumpFacts& b) {
  std::vector<Part> parts;
  for (const State& state : kStates) {
    if (state.name == kOnCpu) continue;
    std::optional<Part> part = part_of(state.name, a, b);
    if (!part) continue;
    part->name = state.sentence;
    parts.push_back(*std::move(part));
  }
  return parts;
}

// The part that changed most in the direction of the whole change. Nothing: none did.
std::optional<Part> largest_change(const std::vector<Part>& parts, double change_ns) {
  const auto share = [change_ns](const Part& part) { return (part.b_ns - part.a_ns) / change_ns; };
  const auto most = std::max_element(
      parts.begin(), parts.end(),
      [&](const Part& one, const Part& other) { return share(one) < share(other); });
  if (most == parts.end() || share(*most) < kMinReason) return {};
  return *most;
}

std::string percent_of(double ns, std::uint64_t whole_ns) {
  return whole_percent(ratio(ns, static_cast<double>(whole_ns)));
}

std::string times_line(const DumpFacts& a, const DumpFacts& b, double change_ns) {
  return "In B the processes stood still for " + human::duration(b.frozen_ns) + ", " +
         human::duration(std::abs(change_ns)) + (change_ns > 0 ? " longer" : " shorter") +
         " than in A (" + human::duration(a.frozen_ns) + ").";
}

std::string phase_line(const Part& phase, double change_ns) {
  const double change = phase.b_ns - phase.a_ns;
  return (change / change_ns > 0.5 ? "Most of that: " : "The largest part of that: ") + phase.name +
         ", " + human::duration(phase.b_ns) + " after " + human::duration(phase.a_ns) + " (" +
         (change > 0 ? "+" : "-") + human::duration(std::abs(change)) + ").";
}

std::string share_line(const Part& part, const DumpFacts& a, const DumpFacts& b) {
  return part.name + " for " + percent_of(part.a_ns, a.frozen_ns) +
         " of the standstill in A, for " + percent_of(part.b_ns, b.frozen_ns) + " in B.";
}

// What the numbers of mappings and of separate pieces of memory cost about.
std::vector<Part> shape_parts(const DumpFacts& a, const DumpFacts& b) {
  if (!a.shape || !b.shape) return {};
  const auto part = [](std::uint64_t in_a, std::uint64_t in_b, const char* what, double each_ns) {
    return Part{
        "B has " + human::with_commas(in_b) + " " + what + ", A " + human::with_commas(in_a) + ".",
        static_cast<double>(in_a) * each_ns, static_cast<double>(in_b) * each_ns};
  };
  return {part(a.shape->mappings, b.shape->mappings, "mappings", kNsAMapping),
          part(a.shape->runs, b.shape->runs, "separate pieces of memory", kStreamedPiece.least_ns)};
}

// Whether the phases of memory, and the end in which the kernel takes it back, made half of the change. So they did
// if the phases are not known.
bool memory_made_it(const DumpFacts& a, const DumpFacts& b, double change_ns) {
  if (a.phases.empty() || b.phases.empty()) return true;
  double memory_ns = 0;
  for (const Part& phase : frozen_phases(a, b)) {
    const bool memory = phase.name.starts_with("memory") || phase.name == criu::kEndPhase;
    if (memory) memory_ns += phase.b_ns - phase.a_ns;
  }
  return memory_ns / change_ns >= 0.5;
}

// The reason is the amount of memory, if it changed as much as the time, else the number of its mappings or pieces
// or a wait. That CRIU worked longer is no reason as long as there is another.
std::string reason_line(const DumpFacts& a, const DumpFacts& b, double change_ns) {
  if (a.bytes != 0 && b.bytes != 0) {
    const double more = static_cast<double>(b.bytes) / static_cast<double>(a.bytes) - 1;
    const double longer = change_ns / static_cast<double>(a.frozen_ns);
    if (more / longer > 0.5 && memory_made_it(a, b, change_ns)) {
      return "B wrote " + human::bytes(b.bytes) + " of memory, A " + human::bytes(a.bytes) + ".";
    }
  }
  const std::optional<Part> piece = largest_change(shape_parts(a, b), change_ns);
  const std::optional<Part> wait = largest_change(wait_parts(a, b), change_ns);
  const auto change_of = [change_ns](const Part& part) {
    return (part.b_ns - part.a_ns) / change_ns;
  };
  if (piece && (!wait || change_of(*piece) > change_of(*wait))) return piece->name;
  if (wait) return share_line(*wait, a, b);
  std::optional<Part> work = part_of(kOnCpu, a, b);
  if (!work || change_of(*work) < kMinReason) return "";
  work->name = kStates.front().sentence;
  return share_line(*work, a, b);
}

}  // namespace

bool is_state(std::string_view words) {
  return std::any_of(kStates.begin(), kStates.end(),
                     [words](const State& state) { return state.shortly == words; });
}

std::string state_words(std::string_view share) {
  for (const State& state : kStates) {
    if (state.name == share) return state.shortly;
  }
  return "";
}

std::vector<std::string> explain_change(const DumpFacts& a, const DumpFacts& b) {
  if (a.frozen_ns == 0 || b.frozen_ns == 0) return {};
  const double change_ns = static_cast<double>(b.frozen_ns) - static_cast<double>(a.frozen_ns);
  if (std::abs(change_ns) < kMinChange * static_cast<double>(std::max(a.frozen_ns, b.frozen_ns))) {
    return {"The processes stood still for about as long: " + human::duration(a.frozen_ns) +
            " in A, " + human::duration(b.frozen_ns) + " in B."};
  }
  std::vector<std::string> lines{times_line(a, b, change_ns)};
  if (const auto phase = largest_change(frozen_phases(a, b), change_ns)) {
    lines.push_back(phase_line(*phase, change_ns));
  }
  if (std::string reason = reason_line(a, b, change_ns); !reason.empty()) {
    lines.push_back(std::move(reason));
  }
  return lines;
}

}  // namespace kymo::diagnosis
