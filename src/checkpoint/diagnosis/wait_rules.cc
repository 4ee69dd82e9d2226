#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/human.h"
#include "base/json_text.h"
#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/diagnosis/rules.h"

namespace kymo::diagnosis {
namespace {

// The share of the machine's CPU time that programs certainly had that are no part of the request. 1 if it is
// not known.
double share_of_others(const Known& known) {
  const Signals& signals = known.facts.signals;
  if (!signals.machine_ns) return 1;
  std::uint64_t own_ns =
      kTicksUncertainNs + signals.cpu_ns.value_or(0) + signals.target_ns.value_or(0);
  if (const auto& stream = known.facts.streaming) {
    own_ns += stream->work_ns - std::min(stream->starved_ns, stream->work_ns);
  }
  const std::uint64_t others_ns = *signals.machine_ns - std::min(own_ns, *signals.machine_ns);
  return ratio(static_cast<double>(others_ns), known.length_ns() * known.facts.cpus);
}

// The time without a wait of this share: all of it may be saved, or half of it.
std::optional<Range> without(const Known& known, double share) {
  return left_after(known, share / 2, share);
}

// The time if memory were written as fast as in other dumps of this machine, or else without the
// wait.
std::optional<Range> at_other_rates(const Known& known, double share) {
  const Facts& facts = known.facts;
  if (!facts.earlier || !facts.dump || facts.restore) return without(known, share);
  const double bytes = static_cast<double>(facts.dump->all_pages_written()) * kPageBytes;
  const double memory =
      known.share_of_phase(criu::kWritePagesPhase) + known.share_of_phase(criu::kSharedMemoryPhase);
  const auto saved = [&](double rate) {
    return memory - ratio(bytes, rate) * kNsPerSecond / known.length_ns();
  };
  const double most = std::min(saved(facts.earlier->fast), memory);
  // This disk may be the one that all dumps were written to.
  if (most < share / 2) return without(known, share);
  // A faster disk ends no wait for a CPU, and the rates of other dumps may be of a machine that was not busy.
  const double without_cpu =
      std::min(known.share(facts.signals.cpu_wait_ns) + share_of_starved_target(known) +
                   share_of_starved_kymod(known),
               1.0);
  const double usual = std::clamp(saved(facts.earlier->usual), most / 2, most);
  return left_after(known, std::clamp(memory - without_cpu, 0.0, usual), most);
}

constexpr double kWorthNaming = 0.01;

// "CRIU (2 %), the target (12 %) or kymod (10 %)": who had no CPU, and for which share. Only the name if
// it was CRIU alone. They add up to `all`, as it is printed, or were starved side by side.
std::string starved_names(double criu, double target, double kymod, double all) {
  if (target < kWorthNaming && kymod < kWorthNaming) return "CRIU";
  struct Starved {
    const char* name;
    double share;
  };
  std::vector<Starved> parts;
  for (const Starved& part :
       {Starved{"CRIU", criu}, Starved{"the target", target}, Starved{"kymod", kymod}}) {
    if (part.share >= kWorthNaming) {
      parts.push_back({part.name, std::round(part.share * 100) / 100});
    }
  }
  const bool overlap = criu + target + kymod > all + kWorthNaming / 2;
  if (!overlap) {
    double rest = std::round(all * 100) / 100;
    for (const Starved& part : parts) rest -= part.share;
    std::max_element(parts.begin(), parts.end(), [](const Starved& a, const Starved& b) {
      return a.share < b.share;
    })->share += rest;
  }
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += i == 0 ? "" : i + 1 == parts.size() ? " or " : ", ";
    text += std::string(parts[i].name) + " (" + whole_percent(parts[i].share) + ")";
  }
  return overlap ? text + ", partly at the same time" : text;
}

// The autogroup whose priority helps most and can be raised. Null: those that waited have the highest already.
// `target` and `kymod`: the shares in which the target, and CRIU or kymod, had no CPU.
const Autogroup* group_to_raise(const Facts& facts, double target, double kymod) {
  constexpr double kWorthRaising = 0.01;
  constexpr int kHighest = -20;
  const Autogroup& of_target = facts.target_group;
  const Autogroup& of_kymod = facts.kymod_group;
  const bool own = of_target.pid != 0 && of_target.name != of_kymod.name;
  const bool raise_target = own && target >= kWorthRaising && of_target.nice > kHighest;
  const bool raise_kymod = of_kymod.nice > kHighest && (!own || kymod >= kWorthRaising);
  if (raise_target && (target > kymod || !raise_kymod)) return &of_target;
  return raise_kymod ? &of_kymod : nullptr;
}

std::string higher_autogroup(const Facts& facts, double target, double kymod) {
  const Autogroup* const group = group_to_raise(facts, target, kymod);
  if (group == nullptr)
    return " (the autogroups of those that had no CPU are at -20 already, which is the highest "
           "priority)";
  const std::string pid = group->pid == 0 ? std::string("PID") : std::to_string(group->pid);
  std::string how =
      group == &facts.target_group
          ? ", or give the target a higher priority before that: echo -20 > /proc/"
          : ", or give CRIU a higher priority, which is that of kymod: echo -20 > /proc/";
  how += pid;
  how += "/autogroup (";
  if (group->pid != 0) how += "it is at " + std::to_string(group->nice) + "; ";
  how += "while kernel.sched_autogroup_enabled is 1, Nice= counts only within a session)";
  return how;
}

// How those that waited for a CPU get more of it than others. CRIU has the priority of the program that starts it.
std::string higher_priority(const Facts& facts, double target, double kymod) {
  if (facts.restore && facts.container) {
    if (facts.priority != Priority::cgroup) return ".";
    return ", or give the container more weight, because its runtime runs CRIU in its cgroup "
           "(runc: linux.resources.cpu.shares in config.json; podman, containerd and Docker: "
           "--cpu-shares when it is created). The cgroups above it need it, too.";
  }
  if (facts.by_containerd) {
    return ", or give containerd, which starts CRIU, a higher priority.";
  }
  std::string how = ", or give kymod, which starts CRIU, a higher priority";
  if (facts.priority == Priority::autogroup) {
    how = higher_autogroup(facts, target, kymod);
  } else if (facts.priority == Priority::nice) {
    how =
        ", or give CRIU a higher priority, which is that of kymod: set Nice=-20 in kymod's systemd "
        "unit";
  } else if (facts.priority == Priority::cgroup) {
    how =
        ", or give CRIU a higher priority, which is that of kymod's cgroup: set CPUWeight=10000 in "
        "kymod's systemd unit and for its slice";
  }
  return how + ".";
}

// The share of a restore in which kymod and the container runtime worked before and after CRIU.
double share_around_criu(const Known& known) {
  if (!known.facts.restore) return 0;
  double share = 0;
  for (const std::string_view phase :
       {kPreparePhase, kStartPhase, kRuntimePhase, std::string_view(criu::kFinishPhase)}) {
    share += known.share_of_phase(phase);
  }
  return share;
}

// The shares in which a limit of CPU time held up CRIU or kymod, and the target. The kernel adds up the times of all CPUs.
std::pair<double, double> quota_shares(const Known& known) {
  const Signals& signals = known.facts.signals;
  const double without_cpu = 1 - known.share(signals.cpu_ns);
  double criu = std::min(known.share(signals.criu_quota_ns), without_cpu);
  double target = std::min(known.share(signals.target_quota_ns), without_cpu);
  // Other programs of that cgroup may have been held up.
  if (known.facts.restore) target = std::min(target, known.share(signals.cpu_wait_ns));
  if (signals.socket_wait_ns) {
    criu = std::min(criu, known.share(signals.cpu_wait_ns) + share_of_starved_kymod(known) +
                              share_around_criu(known));
  }
  return {criu, target};
}

std::string limited_group(const Quota& quota) {
  if (quota.folder.empty()) return "";
  std::array<char, 32> cpus{};
  std::snprintf(cpus.data(), cpus.size(), "%.3g", quota.cpus);
  return ": " + quota.folder + " may use " + cpus.data() + (quota.cpus == 1 ? " CPU" : " CPUs");
}

std::optional<Cause> held_up_by_quota(const Known& known) {
  constexpr double kMinShare = 0.15;
  const Facts& facts = known.facts;
  const auto [criu, target] = quota_shares(known);
  const double share = std::max(criu, target);
  if (share < kMinShare) return {};
  const bool of_target = target > criu;
  const std::string who = of_target       ? facts.restore ? "the restored processes" : "the target"
                          : facts.restore ? "kymod, CRIU or the processes that it restored"
                          : facts.streaming ? "CRIU or kymod"
                                            : "CRIU";
  return Cause{"cpu-quota",
               "held up by a CPU quota",
               share,
               "For " + whole_percent(share) + " " + base_of(facts) +
                   " a limit of CPU time held up " + who +
                   limited_group(of_target ? facts.target_quota : facts.kymod_quota) + ".",
               "15 % " + base_of(facts),
               std::string("Raise that limit, or take it away for the time of the ") +
                   (facts.restore ? "restore" : "dump") +
                   ": CPUQuota= of a systemd unit, --cpus of a container.",
               without(known, share)};
}

// CPU time that kymod itself used while CRIU could run, and need not have. If it took a stream, only its looks are that: it
// makes and fills the files of the images. 0: not known.
std::uint64_t used_by_kymod_ns(const Known& known) {
  const Signals& signals = known.facts.signals;
  const std::uint64_t all_ns = signals.kymod_ns.value_or(0);
  return known.facts.streaming ? std::min(all_ns, signals.kymod_looks_ns.value_or(0)) : all_ns;
}

// Who used the CPUs, and what one can do about it. `lacked`: the share in which CRIU, the target or kymod had no CPU.
std::string who_used_the_cpus(const Known& known, double lacked, const std::string& others) {
  constexpr double kWorthTelling = 0.2;
  const double own = known.share(used_by_kymod_ns(known));
  if (own < kWorthTelling * lacked || own == 0) return "Other programs used the CPUs: " + others;
  const Signals& signals = known.facts.signals;
  const bool looked = signals.kymod_looks_ns.value_or(0) > *signals.kymod_ns / 2;
  std::string text =
      "kymod itself used a CPU for " + whole_percent(own) + " " + base_of(known.facts);
  text += looked ? ", mostly to look at CRIU and the target: start it with --no-inside"
                 : ": kymo profile, with the PID of kymod, shows what for";
  if (own < lacked / 2) text += ". Other programs used the CPUs, too: " + others;
  return text.ends_with('.') ? text : text + ".";
}

// CRIU, the target and kymod also wait for each other, and so do processes that are restored side by side, which add up
// their waiting. That is no starvation by others.
std::optional<Cause> waits_for_cpu(const Known& known) {
  constexpr double kMinShare = 0.15;
  constexpr double kMinNs = 50.0 * kNsPerMs;  // of all: else nothing can be won
  constexpr char kOfAll[] = ", of 50 ms or more";
  if (known.length_ns() < kMinNs) return {};
  const bool restore = known.facts.restore;
  const double all = share_of_starved(known);
  const double held = share_of_quota(known);
  const double share = all - held;
  if (share < kMinShare || share < held) return {};
  const double by_others = share / all;
  const double waited = by_others * known.share(known.facts.signals.cpu_wait_ns);
  const double target = restore ? 0 : by_others * share_of_starved_target(known);
  const double kymod = restore ? 0 : by_others * share_of_starved_kymod(known);
  const std::string who = restore ? "CRIU or the processes that it restored"
                                  : starved_names(waited, target, kymod, share);
  // Nobody measured how long kymod and the runtime waited around CRIU: at most as much of that time as CRIU did of its own.
  const double most =
      std::clamp(ratio(share, 1 - share_around_criu(known)), share, share_of_others(known));
  return Cause{
      "cpu-wait",
      "waited for a CPU",
      share,
      "For " + whole_percent(share) + " " + base_of(known.facts) + " no CPU was free for " + who +
          ".",
      "15 % " + base_of(known.facts) + kOfAll,
      who_used_the_cpus(known, share,
                        std::string("pause them during the ") + (restore ? "restore" : "dump") +
                            higher_priority(known.facts, target, waited + kymod)),
      left_after(known, share / 2, most)};
}

// If they are streamed, kymod writes and reads the images, and CRIU does not. In a restore, each process reads its own memory from the
// images.
double disk_share(const Known& known) {
  const Facts& facts = known.facts;
  const double streamed = facts.streaming ? known.share(facts.streaming->wait_ns) : 0;
  const double restored = facts.restore ? known.share(facts.signals.target_disk_wait_ns) : 0;
  const double waited = std::max({streamed, restored, known.share(facts.signals.disk_wait_ns)});
  return std::min(1.0, waited + known.share_of_phase(criu::kSyncPhase));
}

// Whether most of the waiting for the disk was for dirty pages to be written.
bool is_throttled(const Known& known) {
  const Signals& signals = known.facts.signals;
  return signals.throttled_ns && signals.disk_wait_ns &&
         *signals.throttled_ns > *signals.disk_wait_ns / 2;
}

constexpr double kMinDiskShare = 0.10;

std::optional<Cause> swap(const Known& known) {
  constexpr std::uint64_t kMinFaults = 256;
  const Signals& signals = known.facts.signals;
  if (!signals.major_faults || *signals.major_faults < kMinFaults) return {};
  const double share =
      std::max(known.share(signals.disk_wait_ns), known.share(signals.target_disk_wait_ns));
  if (share < kMinDiskShare) return {};
  return Cause{"swap",
               "fetched memory from disk",
               share,
               "Memory had to be read from a disk " + human::with_commas(*signals.major_faults) +
                   " times (from swap, or from files that were not in memory): this took " +
                   whole_percent(share) + " " + base_of(known.facts) + ".",
               "256 page faults with a disk, and 10 % " + base_of(known.facts),
               "Give the machine more memory, or keep the program out of swap (MemorySwapMax=0 in "
               "its systemd unit)."};
}

// From which part of the memory on compressed images are no gain.
constexpr double kIncompressible = 0.9;

// "saved 3 %" of the memory. "nothing" if the images have this part of the memory or more.
std::string saved_by(double part) {
  return part >= 0.995 ? "nothing" : whole_percent(1 - part);
}

// The option as it can be given. One that excludes it must go.
std::string zstd_option(const Facts& facts) {
  if (facts.unstreamed_by.empty()) return "--compression zstd";
  return "--compression zstd (without " + facts.unstreamed_by + ")";
}

// What is known of compression, as a way to write less. Empty: it is no way.
std::string compression_advice(const Facts& facts) {
  if (facts.restore || facts.container) return {};
  if (facts.streaming && facts.streaming->compressed) {
    if (!facts.dump || facts.image_bytes == 0) return {};
    const double part = ratio(static_cast<double>(facts.image_bytes),
                              static_cast<double>(facts.dump->all_pages_written()) * kPageBytes);
    return part < kIncompressible ? "" : "Compression saved " + saved_by(part) + " of the memory.";
  }
  if (!facts.zstd_share) {
    return "If the memory compresses well, " + zstd_option(facts) + " writes less, too.";
  }
  // Of other dumps without compression nobody knows whether they waited for the disk.
  const std::uint64_t still_ns = stood_still_ns(facts.dump, facts.phases);
  if (facts.zstd_still_ns != 0 && facts.zstd_still_ns >= still_ns) {
    return "--compression zstd would not help: with it, earlier dumps stood still for " +
           human::duration(facts.zstd_still_ns) + ", and this one for " +
           human::duration(still_ns) + ".";
  }
  if (*facts.zstd_share < kIncompressible) {
    return "Or write less: with " + zstd_option(facts) + ", the images of an earlier dump took " +
           whole_percent(*facts.zstd_share) + " of the memory.";
  }
  return "--compression zstd would not help: it saved " + saved_by(*facts.zstd_share) +
         " of the memory in an earlier dump.";
}

std::optional<Cause> waits_for_disk(const Known& known) {
  const double share = disk_share(known);
  if (share < kMinDiskShare || is_throttled(known) || swap(known)) return {};
  const Facts& facts = known.facts;
  const bool synced = known.share_of_phase(criu::kSyncPhase) > share / 2;
  const std::string who = facts.streaming || synced ? "kymod"
                          : facts.restore           ? "CRIU or the processes that it restored"
                                                    : "CRIU";
  return Cause{"disk-wait",
               "waited for the disk",
               share,
               who + " waited for the disk for " + whole_percent(share) + " " + base_of(facts) +
                   (synced ? ", mostly until all images were on it, as --sync asks for." : "."),
               "10 % " + base_of(facts),
               facts.restore
                   ? "Read the images, and the files that the processes map, from a faster disk or "
                     "from a tmpfs."
                   : "Write the images to a faster disk or to a tmpfs.",
               at_other_rates(known, share),
               compression_advice(facts)};
}

std::optional<Cause> waits_for_writeback(const Known& known) {
  const double share = known.share(known.facts.signals.disk_wait_ns);
  if (share < kMinDiskShare || !is_throttled(known)) return {};
  return Cause{"dirty-throttled",
               "waited for dirty pages",
               share,
               "For " + whole_percent(share) + " " + base_of(known.facts) +
                   " the kernel made CRIU wait, because too much data was still to be written to "
                   "the disk (dirty pages).",
               "10 % " + base_of(known.facts),
               "Write the images to a faster disk or to a tmpfs.",
               at_other_rates(known, share)};
}

// What kymod starts may be a wrapper of CRIU. What it waited for is told by other rules.
std::optional<Cause> slow_start(const Known& known) {
  constexpr double kMinShare = 0.20;
  constexpr double kMinNs = 50.0 * kNsPerMs;
  const Facts& facts = known.facts;
  if (facts.container) return {};
  const double share = known.share_of_phase(kStartPhase) - known.share(facts.signals.cpu_wait_ns) -
                       known.share(facts.signals.disk_wait_ns);
  if (share < kMinShare || share * known.length_ns() < kMinNs) return {};
  return Cause{"criu-start",
               "CRIU started slowly",
               share,
               "CRIU's program took " + whole_percent(share) + " " + base_of(facts) +
                   " to start: until then its log has no line.",
               "20 % " + base_of(facts) + ", and 50 ms",
               "Find out what " + (facts.program.empty() ? "it" : valid_utf8(facts.program)) +
                   " does before that: it may be a wrapper of CRIU.",
               without(known, share)};
}

std::optional<Cause> hypervisor(const Known& known) {
  constexpr double kMinShare = 0.10;
  const std::uint64_t steal_ns = known.facts.signals.steal_ns.value_or(0);
  const double share =
      known.share(steal_ns - std::min(steal_ns, kTicksUncertainNs)) / known.facts.cpus;
  if (share < kMinShare) return {};
  return Cause{"steal",
               "hypervisor took CPU time",
               share,
               "The hypervisor gave " + whole_percent(share) +
                   " of this machine's CPU time to other virtual machines.",
               "10 % of the CPU time",
               "Only the hypervisor can change that: give this machine CPUs of its own, or move "
               "it to another host."};
}

std::optional<Cause> memory_pressure(const Known& known) {
  constexpr double kMinShare = 0.10;
  const double share = known.share(known.facts.signals.memory_wait_ns);
  if (share < kMinShare) return {};
  return Cause{
      "memory-pressure",
      "machine had too little memory",
      share,
      "For " + whole_percent(share) + " " + base_of(known.facts) +
          " programs on this machine waited for free memory.",
      "10 % " + base_of(known.facts),
      known.facts.restore
          ? "Free memory before the restore."
          : "Free memory before the dump. If the images are on a tmpfs, write them to a disk."};
}

// CRIU and the target ask each other, and each waits for the other to be woken on another CPU.
std::optional<Cause> wakes_across_cpus(const Known& known) {
  constexpr double kMinShare = 0.15;
  constexpr std::uint64_t kMinWakeups = 200;
  const Facts& facts = known.facts;
  const std::uint64_t wakeups = facts.signals.wakeups.value_or(0);
  if (facts.streaming || facts.cpus < 2 || wakeups < kMinWakeups) return {};
  double share = known.idle_share() - known.late_share();
  // What CRIU waited for is known: it was the target's answer, as long as that did not work on it.
  if (facts.signals.socket_wait_ns) {
    const double answers =
        known.share(facts.signals.socket_wait_ns) - known.share(facts.signals.target_ns);
    share = std::min(share, std::max(0.0, answers));
  }
  if (share < kMinShare) return {};
  return Cause{"cross-cpu",
               "woken across CPUs",
               share,
               "CRIU and the target waited for each other for " + whole_percent(share) + " " +
                   base_of(facts) + ": they run on different CPUs, and CRIU was woken " +
                   human::with_commas(wakeups) + " times.",
               "15 % " + base_of(facts) + ", and 200 wake-ups",
               "Let both use the same CPU: taskset -acp 0 PID, with the PID of kymod (which starts "
               "CRIU) and with that of the target.",
               without(known, share)};
}

// Whoever follows this must not be told to compress again: so it is not said if earlier dumps without compression took as
// long.
std::string advice_of_compression(const Facts& facts) {
  const bool fastest = facts.streaming->codec.ends_with("level 1");
  const std::uint64_t still_ns = stood_still_ns(facts.dump, facts.phases);
  if (facts.plain_still_ns != 0 && facts.plain_still_ns >= still_ns) {
    return (fastest ? "" : "Use --compression-level 1, which is the fastest. ") +
           ("--compression none would not help: with it, earlier dumps stood still for " +
            human::duration(facts.plain_still_ns) + ", and this one for " +
            human::duration(still_ns) + ".");
  }
  return fastest ? "Use --compression none, which needs a faster disk."
                 : "Use --compression-level 1, which is the fastest, or --compression none if the "
                   "disk is fast.";
}

std::optional<Cause> waits_for_compression(const Known& known) {
  const double share = compression_share(known);
  if (share == 0 || !known.facts.streaming) return {};
  const std::string& codec = known.facts.streaming->codec;
  return Cause{"compression",
               "waited for compression",
               share,
               std::string("kymod compressed the images") +
                   (codec.empty() ? "" : " (" + codec + ")") + " for " + whole_percent(share) +
                   " " + base_of(known.facts) + ", and CRIU waited for it.",
               "50 % " + base_of(known.facts),
               advice_of_compression(known.facts),
               without(known, share)};
}

// A dump is answered once all images are written, if kymod runs.
std::optional<Cause> late_answers(const Known& known) {
  const Facts& facts = known.facts;
  // At the end CRIU waits in a notification until the stream is written.
  if (compression_share(known) != 0) return {};
  // The rest of that phase, kymod's script was started: other rules say why that took long.
  const double gaps = known.share(facts.signals.answer_gaps_ns);
  const double share = known.late_share() + std::min(known.share_of_phase(criu::kAnswerPhase),
                                                     known.share(facts.answering_ns) + gaps);
  if (!is_long_answer(known, share)) return {};
  const bool stopped = gaps + known.late_share() >= share / 2;
  const bool writes = !stopped && !facts.restore;
  if (writes && waits_for_disk(known)) return {};
  std::string evidence = "CRIU waited for kymod for " + whole_percent(share) + " " + base_of(facts);
  std::string advice;
  if (stopped) {
    evidence += ": kymod itself did not run";
    advice =
        "Find out why kymod did not run: it was stopped (SIGSTOP), or it got no CPU or no memory.";
  } else if (writes) {
    evidence += ": kymod was still writing the images to the disk";
    advice = "Write the images to a faster disk or to a tmpfs.";
  }
  return Cause{"late-answers",
               "kymod answered late",
               share,
               evidence + ".",
               "10 % " + base_of(facts) + kOfAnswers,
               std::move(advice)};
}

// Somebody, or the supervisor of a program, has stopped CRIU or the runtime that started it.
std::optional<Cause> stopped(const Known& known) {
  constexpr double kMinShareBefore = 0.10;
  constexpr std::uint64_t kMinBeforeNs = 50 * kNsPerMs;
  const Facts& facts = known.facts;
  const double share = known.share(facts.signals.stopped_ns);
  const std::uint64_t before_ns = facts.signals.stopped_before_ns.value_or(0);
  const double of_all =
      ratio(static_cast<double>(before_ns), static_cast<double>(facts.duration_ns));
  const bool before = before_ns >= kMinBeforeNs && of_all >= kMinShareBefore;
  const bool meanwhile = is_long_answer(known, share);
  if (!meanwhile && !before) return {};
  return Cause{"criu-stopped",
               "CRIU was stopped",
               meanwhile ? share : 0,
               (meanwhile ? "For " + whole_percent(share) + " " + base_of(facts)
                          : "Before the standstill, for " + human::duration(before_ns) + ",") +
                   " CRIU itself was stopped by a signal (SIGSTOP).",
               "10 % " + base_of(facts) + kOfAnswers,
               "Find out who stops CRIU; kill -CONT with its PID lets it go on.",
               without(known, share)};
}

constexpr std::array<Rule, 13> kWaitRules = {held_up_by_quota,
                                             waits_for_disk,
                                             waits_for_writeback,
                                             waits_for_cpu,
                                             slow_start,
                                             hypervisor,
                                             swap,
                                             memory_pressure,
                                             wakes_across_cpus,
                                             waits_for_compression,
                                             late_answers,
                                             hooks,
                                             stopped};

}  // namespace

double share_of_starved(const Known& known) {
  double share = known.share(known.facts.signals.cpu_wait_ns);
  if (!known.facts.restore) share += share_of_starved_target(known) + share_of_starved_kymod(known);
  return std::min(share, share_of_others(known));
}

double share_of_quota(const Known& known) {
  const auto [criu, target] = quota_shares(known);
  return std::min(share_of_starved(known), std::max(criu, target));
}

double share_of_starved_target(const Known& known) {
  const Signals& signals = known.facts.signals;
  return std::min(known.share(signals.socket_wait_ns), known.share(signals.target_cpu_wait_ns));
}

double share_of_starved_kymod(const Known& known) {
  const Facts& facts = known.facts;
  if (!facts.streaming) return 0;
  return std::min(known.share(facts.signals.pipe_wait_ns),
                  known.share(facts.streaming->starved_ns));
}

double compression_share(const Known& known) {
  constexpr double kMinShare = 0.50;
  const std::optional<Streaming>& streaming = known.facts.streaming;
  if (known.facts.restore || !streaming || !streaming->compressed) return 0;
  const double share = known.share(streaming->work_ns);
  return share < kMinShare ? 0 : share;
}

std::span<const Rule> wait_rules() {
  return kWaitRules;
}

}  // namespace kymo::diagnosis
