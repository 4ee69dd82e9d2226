#include <algorithm>
#include <array>
#include <utility>

#include "base/human.h"
#include "criu/phases.h"
#include "diagnosis/rules.h"

namespace kymo::diagnosis {
namespace {

// Below, the work on the rest of a process counts for too much.
constexpr std::uint64_t kMinMemoryPages = 8192;  // 32 MiB

double pages_of(const Facts& facts) {
  return facts.dump ? static_cast<double>(facts.dump->pages_written) : 0;
}

// CPU time that copying memory takes. About half a second a GiB is usual; much more means that the
// host first had to supply the memory of the page cache.
std::optional<Finding> host_memory(const Known& known) {
  constexpr double kUsualNsPerGiB = kNsPerSecond / 2;
  constexpr double kMinNsPerGiB = kNsPerSecond;
  const Facts& facts = known.facts;
  if (facts.restore || !facts.dump || !facts.signals.cpu_ns) return {};
  if (facts.dump->pages_written < kMinMemoryPages) return {};
  const double gib = pages_of(facts) * kPageBytes / kGiB;
  const double memory = known.share_of_phase("memory");
  const double cpu_ns = static_cast<double>(*facts.signals.cpu_ns) * memory;
  if (memory < 0.5 || cpu_ns / gib < kMinNsPerGiB) return {};
  const double excess = std::min(memory, ratio(cpu_ns - gib * kUsualNsPerGiB, known.length_ns()));
  return Finding{"host-memory",
                 "memory had to be supplied",
                 excess,
                 "Copying the memory took " + human::duration(cpu_ns / gib) +
                     " of CPU time for each GiB; about 0.5 s is usual.",
                 "1 s of CPU time a GiB",
                 "The machine had to be given memory for the page cache first: just before the "
                 "dump, write a file of its size to the disk of the images and remove it.",
                 left_after(known, excess / 2, excess)};
}

// What a dump does for its mappings: all but writing their pages.
std::optional<Finding> many_mappings(const Known& known) {
  constexpr std::uint64_t kMinMappings = 10'000;
  // Without its log CRIU was faster by a quarter (measured with 15,000 mappings).
  constexpr double kMinOfLog = 0.1;
  constexpr double kMaxOfLog = 0.35;
  const Facts& facts = known.facts;
  if (facts.restore || !facts.shape || facts.shape->mappings < kMinMappings) return {};
  const double share = known.share_of_phase("collect") +
                       known.share_of_phase("processes and files") +
                       known.share_of_phase("memory: finding pages");
  return Finding{"many-mappings",
                 "many mappings",
                 share,
                 "CRIU saved " + human::with_commas(facts.shape->mappings) +
                     " mappings, and read and logged each of them: " + whole_percent(share) +
                     " of that time.",
                 "10,000 mappings",
                 facts.container ? "Let the program map fewer, larger areas."
                                 : "Dump with --log-level 0 (CRIU then writes no log), or let the "
                                   "program map fewer, larger areas.",
                 facts.container ? std::nullopt : left_after(known, kMinOfLog, kMaxOfLog)};
}

std::optional<Finding> scattered_memory(const Known& known) {
  constexpr double kMinPagesARun = 16;  // 64 KiB
  constexpr double kMinShare = 0.30;
  const Facts& facts = known.facts;
  if (facts.restore || !facts.shape || facts.shape->pages < kMinMemoryPages) return {};
  const double pages_a_run =
      ratio(static_cast<double>(facts.shape->pages), static_cast<double>(facts.shape->runs));
  const double share = known.share_of_phase("memory");
  if (pages_a_run >= kMinPagesARun || share < kMinShare) return {};
  return Finding{"scattered-memory",
                 "scattered memory",
                 share,
                 "The memory lies in " + human::with_commas(facts.shape->runs) + " pieces of " +
                     human::bytes(pages_a_run * kPageBytes) + " on average; saving it took " +
                     whole_percent(share) + " of that time.",
                 "less than 64 KiB a piece",
                 "Huge pages in the program make larger pieces (madvise MADV_HUGEPAGE).",
                 left_after(known, share / 4, share * 3 / 4)};
}

// CRIU itself is busy, and no rule knows a reason that could be removed.
std::optional<Finding> copying(const Known& known) {
  constexpr double kMinShare = 0.60;
  const Facts& facts = known.facts;
  if (facts.restore || !facts.dump || facts.dump->pages_written < kMinMemoryPages) return {};
  const double share = std::min(known.share(facts.signals.cpu_ns), known.share_of_phase("memory"));
  if (share < kMinShare || host_memory(known) || many_mappings(known) || scattered_memory(known)) {
    return {};
  }
  return Finding{"copying",
                 "copying took the CPU",
                 share,
                 "CRIU used a CPU for " + whole_percent(share) +
                     " of that time to copy the memory: a faster disk would not help.",
                 "60 % of the time",
                 ""};
}

std::optional<Finding> slow_freeze(const Known& known) {
  constexpr std::uint64_t kMinUs = 50'000;
  const Facts& facts = known.facts;
  if (!facts.dump || facts.dump->freezing_time_us < kMinUs) return {};
  const double ns = static_cast<double>(facts.dump->freezing_time_us) * kNsPerUs;
  const double share = std::min(1.0, ratio(ns, known.length_ns()));
  std::string evidence = "Freezing took " + human::duration(ns);
  std::string advice;
  const std::uint64_t slept_ns = facts.signals.freeze_disk_wait_ns.value_or(0);
  if (facts.sleeper && static_cast<double>(slept_ns) > ns / 2) {
    evidence +=
        ": thread " + std::to_string(facts.sleeper->id) + " was in uninterruptible sleep (state D)";
    if (!facts.sleeper->where.empty()) evidence += ", in the kernel's " + facts.sleeper->where;
    evidence += ".";
    advice = "Find out what that thread waits for, mostly a slow disk or network file system.";
  } else if (facts.container) {
    evidence +=
        ": with version 1 of cgroups CRIU looks only every 100 ms whether a container is "
        "frozen.";
  } else {
    evidence += ": some tasks could not be stopped at once.";
  }
  return Finding{"slow-freeze", "froze slowly", share, evidence, "50 ms", std::move(advice)};
}

std::optional<Finding> many_things(const Known& known) {
  constexpr double kMinShare = 0.40;
  constexpr double kMinNs = 50.0 * kNsPerMs;
  const double share = known.share_of_phase("processes and files") +
                       known.share_of_phase("collect") - known.late_share();
  if (known.facts.restore || share < kMinShare || share * known.length_ns() < kMinNs) return {};
  if (many_mappings(known)) return {};
  std::string evidence = "CRIU saved processes, files and mappings for " + whole_percent(share) +
                         " of that time, and not their memory";
  if (known.facts.shape) {
    const std::uint64_t processes = known.facts.shape->processes;
    evidence += " (" + human::with_commas(processes) +
                (processes == 1 ? " process, " : " processes, ") +
                human::with_commas(known.facts.shape->mappings) + " mappings)";
  }
  return Finding{"many-files",   "many processes, files, mappings", share,
                 evidence + ".", "40 % of the time, and 50 ms",     ""};
}

std::optional<Finding> memory_released(const Known& known) {
  constexpr double kMinShare = 0.20;
  const double share = known.share_of_phase(criu::kEndPhase);
  if (!known.facts.ended || share < kMinShare) return {};
  return Finding{"memory-released",
                 "kernel released the memory",
                 share,
                 "The kernel took back the memory of the ended processes for " +
                     whole_percent(share) + " of that time.",
                 "20 % of the time",
                 "For an earlier answer: dump with --leave-running, then end the processes."};
}

std::optional<Finding> page_faults(const Known& known) {
  constexpr double kMinShare = 0.30;
  constexpr double kFaultNs = 3500;  // measured: 3.5 us where memory is at hand
  if (!known.facts.restore || !known.facts.signals.faults) return {};
  const auto faults = static_cast<double>(*known.facts.signals.faults);
  const double share = std::min(1.0, ratio(faults * kFaultNs, known.length_ns()));
  if (share < kMinShare) return {};
  return Finding{"page-faults",
                 "page faults",
                 share,
                 "The memory came back by " + human::with_commas(*known.facts.signals.faults) +
                     " page faults, about " + whole_percent(share) + " of that time.",
                 "30 % of the time",
                 ""};
}

std::optional<Finding> many_processes(const Known& known) {
  constexpr std::uint64_t kMinProcesses = 32;
  constexpr double kMinShare = 0.40;
  constexpr double kMinNs = 50.0 * kNsPerMs;
  const Facts& facts = known.facts;
  if (!facts.restore || !facts.shape || facts.shape->processes < kMinProcesses) return {};
  const double share = known.share_of_phase("processes and files");
  if (share < kMinShare || share * known.length_ns() < kMinNs) return {};
  std::string evidence = "CRIU created " + human::with_commas(facts.shape->processes) +
                         " processes with their files for " + whole_percent(share) +
                         " of that time";
  if (facts.restored) {
    evidence += ", " + human::duration(std::uint64_t{facts.restored->forking_time_us} * kNsPerUs) +
                " of it in fork";
  }
  return Finding{"many-processes",
                 "many processes",
                 share,
                 evidence + ".",
                 "32 processes, 40 % of the time, and 50 ms",
                 ""};
}

std::optional<Finding> kernel_probed(const Known& known) {
  constexpr std::uint64_t kMinNs = 20 * kNsPerMs;
  const std::uint64_t ns = time_in(known.facts.phases, "look at the kernel");
  if (ns < kMinNs) return {};
  const auto whole = static_cast<double>(known.facts.duration_ns);
  return Finding{
      "kernel-probed", "kernel was probed first",
      // It is before the freeze, so it weighs less than anything that keeps processes still.
      known.facts.restore ? ratio(static_cast<double>(ns), whole) : 0,
      "Before the rest CRIU looked at the kernel for " + human::duration(ns) + ".", "20 ms",
      "Keep /run on a tmpfs: CRIU then keeps what it learns in /run/criu.kdat."};
}

constexpr std::array<Rule, 10> kWorkRules = {
    host_memory, many_mappings,   scattered_memory, copying,        slow_freeze,
    many_things, memory_released, page_faults,      many_processes, kernel_probed};

}  // namespace

std::span<const Rule> work_rules() {
  return kWorkRules;
}

}  // namespace kymo::diagnosis
