#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/human.h"
#include "base/json_text.h"
#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/diagnosis/rules.h"

namespace kymo::diagnosis {
namespace {

// Below, the work on the rest of a process counts for too much.
constexpr std::uint64_t kMinMemoryPages = 8192;  // 32 MiB

double pages_of(const Facts& facts) {
  return facts.dump ? static_cast<double>(facts.dump->all_pages_written()) : 0;
}

// The largest share of a rule for waits that is (`of_these`) or is not one of `rules`. 0: none applies.
double largest_wait(const Known& known, std::initializer_list<std::string_view> rules,
                    bool of_these) {
  double largest = 0;
  for (const Rule rule : wait_rules()) {
    const std::optional<Cause> finding = rule(known);
    if (!finding) continue;
    const bool named = std::find(rules.begin(), rules.end(), finding->rule) != rules.end();
    if (named == of_these) largest = std::max(largest, finding->share);
  }
  return largest;
}

// CPU time in which kymod copied the memory of a stream that it did not compress.
std::uint64_t copied_by_kymod_ns(const Facts& facts) {
  if (!facts.streaming || facts.streaming->compressed) return 0;
  return facts.streaming->work_ns - std::min(facts.streaming->starved_ns, facts.streaming->work_ns);
}

const PieceCost& a_piece(const Facts& facts) {
  if (facts.streaming) return kStreamedPiece;
  return facts.container ? kLoggedPiece : kWrittenPiece;
}

// CPU time that copying memory takes. About half a second a GiB is usual; much more means that the
// host first had to supply the memory of the page cache.
std::optional<Cause> supplied_memory(const Known& known) {
  constexpr double kUsualNsPerGiB = kNsPerSecond / 2;
  constexpr double kMinNsPerGiB = kNsPerSecond;
  const Facts& facts = known.facts;
  if (facts.restore || !facts.dump || !facts.signals.cpu_ns) return {};
  if (facts.dump->all_pages_written() < kMinMemoryPages) return {};
  const double gib = pages_of(facts) * kPageBytes / kGiB;
  const double memory = known.share_of_phase("memory");
  const double cpu_ns = static_cast<double>(*facts.signals.cpu_ns) * memory +
                        static_cast<double>(copied_by_kymod_ns(facts));
  const double of_pieces =
      facts.shape ? static_cast<double>(facts.shape->runs) * a_piece(facts).most_ns : 0;
  if (memory < 0.5 || (cpu_ns - of_pieces) / gib < kMinNsPerGiB) return {};
  const double excess =
      std::min(memory, ratio(cpu_ns - of_pieces - gib * kUsualNsPerGiB, known.length_ns()));
  return Cause{"host-memory",
               "host had to supply memory",
               excess,
               "Copying the memory took " + human::duration(cpu_ns / gib) +
                   " of CPU time for each GiB (0.5 s is usual): the host of this virtual machine "
                   "first had to supply memory for the page cache.",
               "1 s of CPU time for each GiB",
               "Just before the dump, write a file of the dump's size to the disk of the images "
               "and remove it: dd if=/dev/zero of=FILE bs=1M count=" +
                   std::to_string(std::lround(gib * kGiB / kMiB)) + " && rm FILE.",
               left_after(known, excess / 2, excess)};
}

// Its advice, to write a file just before the dump, makes a slow disk slower.
std::optional<Cause> host_memory(const Known& known) {
  std::optional<Cause> finding = supplied_memory(known);
  if (finding && largest_wait(known, {"disk-wait", "dirty-throttled"}, true) > finding->share) {
    finding.reset();
  }
  return finding;
}

// Whether CRIU's log had too few lines to divide the phases of a dump.
bool is_undivided(const Known& known) {
  return known.share_of_phase(kAllButMemoryPhase) + known.share_of_phase(kUndividedPhase) > 0;
}

// What a dump does for its mappings: all but writing their pages.
std::optional<Cause> many_mappings(const Known& known) {
  constexpr std::uint64_t kMinMappings = 10'000;
  // Without its log CRIU was faster by a quarter (measured with 15,000 mappings).
  constexpr double kMinOfLog = 0.1;
  constexpr double kMaxOfLog = 0.35;
  const Facts& facts = known.facts;
  if (facts.restore || !facts.shape || facts.shape->mappings < kMinMappings) return {};
  const double share = known.share_of_phase("collect") +
                       known.share_of_phase("processes and files") +
                       known.share_of_phase("memory: finding pages");
  // If the log has too few lines to divide these phases, CRIU wrote none for the mappings.
  const bool logged = share != 0 && !is_undivided(known);
  std::string took = logged ? " mappings, and CRIU read and logged each of them"
                            : " mappings, and CRIU read each of them";
  if (share != 0) took += ": this took " + whole_percent(share) + " " + base_of(facts);
  // The runtime of a container chooses the level of the log.
  const bool no_log = facts.container || !logged;
  return Cause{"many-mappings",
               "many mappings",
               share,
               "The memory consists of " + human::with_commas(facts.shape->mappings) + took + ".",
               "10,000 mappings",
               no_log ? "Let the program map fewer, larger areas."
                      : "Dump with --log-level 1 (CRIU then logs errors only), or let the "
                        "program map fewer, larger areas.",
               no_log ? std::nullopt : left_after(known, kMinOfLog, kMaxOfLog)};
}

// CRIU asks for each piece of memory, and writes it, with calls of its own.
std::optional<Cause> scattered_memory(const Known& known) {
  // Measured as PieceCost.
  constexpr double kNsAPage = 1'700;
  constexpr double kMinShare = 0.10;
  const Facts& facts = known.facts;
  if (facts.restore || !facts.shape || facts.shape->pages < kMinMemoryPages) return {};
  const double pieces = static_cast<double>(facts.shape->runs);
  const double pages = static_cast<double>(facts.shape->pages);
  const auto [least_ns, most_ns] = a_piece(facts);
  const double of_memory = ratio(pieces * least_ns, pieces * least_ns + pages * kNsAPage);
  const auto at_most = static_cast<std::uint64_t>(pieces * most_ns);
  const double share = std::min(known.share_of_phase("memory") * of_memory, known.share(at_most));
  if (share < kMinShare) return {};
  return Cause{"scattered-memory",
               "scattered memory",
               share,
               "The memory that was saved lies in " + human::with_commas(facts.shape->runs) +
                   " separate pieces of " + human::bytes(ratio(pages, pieces) * kPageBytes) +
                   " on average: that there are so many took about " + whole_percent(share) + " " +
                   base_of(facts) + ".",
               "10 % " + base_of(facts) +
                   ", at 1.7 us a page and 0.7 to 1.05 us a piece, 6 to 7 us if it is not "
                   "streamed",
               "Let the program keep what it uses next to each other, with no unused pages "
               "between. Huge pages do not help: the unused parts would be saved, too.",
               left_after(known, share / 2, share * 3 / 2)};
}

// CRIU itself is busy, or kymod that takes its stream, and no rule knows a reason that could be removed.
std::optional<Cause> copying(const Known& known) {
  constexpr double kMinShare = 0.60;
  const Facts& facts = known.facts;
  if (facts.restore || !facts.dump || facts.dump->all_pages_written() < kMinMemoryPages) return {};
  if (!facts.signals.cpu_ns) return {};
  const std::uint64_t kymod_ns = copied_by_kymod_ns(facts);
  const double share =
      std::min(known.share(*facts.signals.cpu_ns + kymod_ns), known.share_of_phase("memory"));
  if (share < kMinShare || supplied_memory(known) || many_mappings(known) ||
      scattered_memory(known)) {
    return {};
  }
  return Cause{"copying",
               "copying took the CPU",
               share,
               std::string(kymod_ns == 0 ? "CRIU" : "CRIU and kymod") + " used a CPU for " +
                   whole_percent(share) + " " + base_of(facts) +
                   " to copy the memory: a faster disk would not help.",
               "60 % " + base_of(facts),
               ""};
}

// What a thread in uninterruptible sleep waits for, and what one can do about it.
struct Sleep {
  std::string_view function;  // of the kernel; the thread's begins so
  const char* what;
  const char* advice;
};
constexpr const char* kSlowStorage =
    "Find out why that storage is slow: it does not answer, or is busy.";
constexpr const char* kOfVfork =
    "CRIU can stop the thread once that child runs another program (exec) or ends: find out what "
    "the child waits for, or dump at another moment.";
constexpr std::array kSleeps = {
    Sleep{"kernel_clone", "for a child that it started by vfork or posix_spawn", kOfVfork},
    Sleep{"wait_for_vfork_done", "for a child that it started by vfork or posix_spawn", kOfVfork},
    Sleep{"balance_dirty_pages", "until the disk has taken what was written before", kSlowStorage},
    Sleep{"folio_wait", "for a page that a disk reads or writes", kSlowStorage},
    Sleep{"wait_on_page", "for a page that a disk reads or writes", kSlowStorage},
    Sleep{"io_schedule", "for a disk", kSlowStorage},
    Sleep{"blk_", "for a disk", kSlowStorage},
    Sleep{"submit_bio", "for a disk", kSlowStorage},
    Sleep{"jbd2_", "for the journal of an ext4 file system", kSlowStorage},
    Sleep{"nfs", "for an NFS server", kSlowStorage},
    Sleep{"rpc_", "for an NFS server", kSlowStorage},
    Sleep{"cifs_", "for an SMB server", kSlowStorage},
    Sleep{"request_wait_answer", "for the program that serves a FUSE file system", kSlowStorage},
    Sleep{"fuse_", "for the program that serves a FUSE file system", kSlowStorage},
};

// `where`: a function of the kernel. Nothing: it is not in the table.
const Sleep* sleep_in(std::string_view where) {
  const auto* const found =
      std::find_if(kSleeps.begin(), kSleeps.end(),
                   [where](const Sleep& sleep) { return where.starts_with(sleep.function); });
  return found == kSleeps.end() ? nullptr : found;
}

// What kept a thread from being stopped, with the advice.
std::pair<std::string, std::string> of_sleeper(const SleepingThread& thread) {
  const Sleep* const sleep = sleep_in(thread.where);
  std::string text = ": thread " + std::to_string(thread.id);
  text += sleep != nullptr ? std::string(" waited ") + sleep->what + ", and cannot be stopped then"
                           : std::string(" could not be stopped");
  text += " (uninterruptible sleep, state D";
  if (!thread.where.empty()) text += ", kernel function " + thread.where;
  text += ").";
  return {std::move(text),
          sleep != nullptr ? sleep->advice
                           : "Find out what that thread waits for: often a slow disk or network "
                             "file system."};
}

// Threads besides the first of each process. 0: there are none, or it is not known.
std::uint64_t more_threads(const criu::MemoryShape& shape) {
  return shape.threads - std::min(shape.processes, shape.threads);
}

constexpr char kFewerThreads[] =
    "No option of CRIU makes this faster: let the program end threads that it does not need before "
    "it is dumped.";

std::optional<Cause> slow_freeze(const Known& known) {
  constexpr double kMinUs = 50'000;
  constexpr double kNsToStopAThread = 300'000;  // at most; estimated with 1,000 and 3,000 threads
  const Facts& facts = known.facts;
  if (!facts.dump) return {};
  // Not the time for which CRIU could stop nobody, because itself was stopped or had no CPU time.
  const Signals& signals = facts.signals;
  const double held_up = static_cast<double>(
      std::max(signals.stopped_ns.value_or(0), signals.criu_quota_ns.value_or(0)));
  const double ns = static_cast<double>(facts.dump->freezing_time_us) * kNsPerUs - held_up;
  if (ns < kMinUs * kNsPerUs) return {};
  // Without phases, the statistics alone say how long the processes stood still.
  const double whole = known.length_ns() > 0
                           ? known.length_ns()
                           : static_cast<double>(stood_still_ns(facts.dump, facts.phases));
  const double share = std::min(1.0, ratio(ns, whole));
  std::string evidence = "Stopping all threads (freeze) took " + human::duration(ns) + ", " +
                         whole_percent(share) + " " + base_of(facts);
  std::string advice;
  const std::uint64_t slept_ns = facts.signals.freeze_disk_wait_ns.value_or(0);
  // With cgroups version 1, a frozen thread is in the state D, too. If the kernel does not say where it
  // sleeps, it may be that.
  const bool sleeps = facts.sleeper && !(facts.container && facts.sleeper->where.empty());
  if (sleeps && static_cast<double>(slept_ns) > ns / 2) {
    std::string why;
    std::tie(why, advice) = of_sleeper(*facts.sleeper);
    evidence += why;
  } else if (facts.container) {
    evidence +=
        ": CRIU looks only every 100 ms whether the freezer of the container has stopped all of "
        "them "
        "(cgroups version 1).";
  } else if (facts.shape &&
             static_cast<double>(more_threads(*facts.shape)) * kNsToStopAThread > ns / 2) {
    evidence +=
        ": CRIU stops the " + human::with_commas(facts.shape->threads) + " threads one by one.";
    advice = kFewerThreads;
  } else {
    evidence += ": some threads could not be stopped at once.";
  }
  return Cause{"slow-freeze", "froze slowly", share, evidence, "50 ms", std::move(advice)};
}

// "1 file", "3,600 files".
std::string counted(std::uint64_t count, std::string_view noun) {
  std::string text = human::with_commas(count) + " ";
  text += noun;
  if (count != 1) text += noun.ends_with('s') ? "es" : "s";
  return text;
}

// What a dump saves besides the memory.
struct Objects {
  // "3,604 files (and 10 sockets, 125 mappings, 1 process)": first the kind that took most.
  std::string counted;
  // "file", or "of them" if that kind did not take nearly all, and the part of the time that one took.
  std::string one;
  double share_of_one;
  bool threads;     // that kind is threads
  double usual_ns;  // what all of them take
};

// Which kind took most is not known from its number: a thread takes as long as 20 mappings. The costs are estimates from
// CRIU's logs of dumps on two cores of a virtual machine, with 3,600 files, 3,000 threads, 6,000 mappings and 100 processes.
Objects objects_of(const criu::MemoryShape& shape) {
  constexpr double kNearlyAll = 0.9;
  struct Kind {
    std::uint64_t count;
    const char* noun;
    double usual_ns;  // what they take
  };
  const auto kind = [](std::uint64_t count, const char* noun, double each_us,
                       std::uint64_t that_take) {
    return Kind{count, noun, each_us * kNsPerUs * static_cast<double>(that_take)};
  };
  const std::uint64_t files = shape.files - std::min(shape.sockets, shape.files);
  const std::uint64_t threads = more_threads(shape);
  const std::array<Kind, 6> kinds{
      kind(files, "file", 33, files),
      kind(shape.sockets, "socket", 33, shape.sockets),
      kind(threads == 0 ? 0 : shape.threads, "thread", 600, threads),
      kind(shape.mappings, "mapping", 30, shape.mappings),
      kind(shape.shared, "shared mapping", 700, shape.shared),
      kind(shape.processes, "process", 6000,
           shape.processes - std::min<std::uint64_t>(1, shape.processes))};
  const Kind* const most =
      std::max_element(kinds.begin(), kinds.end(),
                       [](const Kind& a, const Kind& b) { return a.usual_ns < b.usual_ns; });
  double usual_ns = 0;
  std::uint64_t count = 0;
  std::string others;
  for (const Kind& one : kinds) {
    usual_ns += one.usual_ns;
    count += one.count;
    if (&one == most || one.count == 0) continue;
    others += others.empty() ? " (and " : ", ";
    others += counted(one.count, one.noun);
  }
  if (!others.empty()) others += ")";
  const bool nearly_all = most->usual_ns >= kNearlyAll * usual_ns;
  const double of_most = nearly_all ? ratio(most->usual_ns, usual_ns) : 1;
  return {counted(most->count, most->noun) + others, nearly_all ? most->noun : "of them",
          ratio(of_most, static_cast<double>(nearly_all ? most->count : count)),
          most->noun == std::string_view("thread"), usual_ns};
}

// Where CRIU was slow with few things, by its log.
std::string advice_on_pause(const Known& known) {
  const criu::LogPause& pause = known.facts.longest_pause;
  const std::string log = known.facts.log.empty() ? "dump.log" : known.facts.log;
  if (is_undivided(known) || pause.length_us == 0) {
    return "So few should take less: dump once at the default log level, and kymo explain names "
           "the longest pause between two lines of CRIU's log (" +
           log + ").";
  }
  const auto pause_ns = static_cast<double>(pause.length_us) * kNsPerUs;
  return "So few should take less: the longest pause in CRIU's log (" + log + "), " +
         human::duration(pause_ns) + ", is between \"" + valid_utf8(pause.before) + "\" and \"" +
         valid_utf8(pause.after) + "\": find out what holds CRIU up there.";
}

// The share of a dump in which CRIU saved pieces of shared memory that are so many and so small that their number counts.
double share_of_small_pieces(const Known& known) {
  constexpr std::uint64_t kMany = 100;
  constexpr std::uint64_t kSmallPages = 64;  // on average
  const Facts& facts = known.facts;
  if (!facts.shape || !facts.dump || facts.shape->shared < kMany) return 0;
  const bool small = facts.dump->shpages_written.value_or(0) < kSmallPages * facts.shape->shared;
  return small ? known.share_of_phase(criu::kSharedMemoryPhase) : 0;
}

std::optional<Cause> many_things(const Known& known) {
  constexpr double kSlowForEachNs = 1e6;
  constexpr double kSlow = 5;  // times as long as usual
  constexpr double kMinShare = 0.40;
  constexpr double kMinNs = 50.0 * kNsPerMs;
  const double took = known.share_of_phase("processes and files") +
                      known.share_of_phase("collect") + share_of_small_pieces(known) -
                      known.late_share();
  const double share = took - known.held_up_share();
  if (known.facts.restore || share < kMinShare || share * known.length_ns() < kMinNs) return {};
  if (many_mappings(known)) return {};
  // Without the log's lines, the time of shared memory is in this phase, and nobody knows how much it is.
  const std::optional<criu::DumpStats>& stats = known.facts.dump;
  if (is_undivided(known) && stats && stats->shpages_written.value_or(0) >= kMinMemoryPages) {
    return {};
  }
  // The images are written through kymod, so CRIU waits for its compression in these phases, too.
  if (compression_share(known) != 0) return {};
  const std::string time = " " + whole_percent(share) + " " + base_of(known.facts);
  if (!known.facts.shape) {
    return Cause{"many-files",
                 "many files or processes",
                 share,
                 "Saving all but the memory (files, sockets, processes) took" + time +
                     ". How many there are is not known.",
                 "40 % of the standstill, and 50 ms",
                 ""};
  }
  const Objects objects = objects_of(*known.facts.shape);
  const double took_ns = share * known.length_ns();
  const double each_ns = took_ns * objects.share_of_one;
  const bool slow = each_ns >= kSlowForEachNs && took_ns >= kSlow * objects.usual_ns;
  // So few took that long because something held CRIU up, and another rule says what. The phases of
  // these two are no part of the share.
  if (slow && largest_wait(known, {"hooks", "late-answers"}, false) >= took / 4) return {};
  const char* const shortly = slow              ? "files or processes took long"
                              : objects.threads ? "many threads"
                                                : "many files or processes";
  return Cause{objects.threads && !slow ? "many-threads" : "many-files",
               shortly,
               share,
               "Saving " + objects.counted + " took" + time + ", about " +
                   human::duration(each_ns) + " for each " + objects.one + ".",
               "40 % of the standstill, and 50 ms",
               slow ? advice_on_pause(known)
               : objects.threads
                   ? kFewerThreads
                   : "No option of CRIU makes this faster: let the program close what it does "
                     "not need."};
}

constexpr char kLongPhase[] = ", and 20 ms";

// The share of a phase; 0 if it is too short to be a cause.
double share_of_long_phase(const Known& known, std::string_view phase) {
  constexpr double kMinShare = 0.20;
  constexpr double kMinNs = 20.0 * kNsPerMs;
  const double share = known.share_of_phase(phase) - known.late_share();
  return share < kMinShare || share * known.length_ns() < kMinNs ? 0 : share;
}

std::optional<Cause> mounts(const Known& known) {
  const double share = share_of_long_phase(known, criu::kMountsPhase);
  if (share == 0) return {};
  return Cause{"mounts",
               known.facts.restore ? "made the mounts" : "saved the mounts",
               share,
               std::string(known.facts.restore ? "Making" : "Saving") + " the mounts took " +
                   whole_percent(share) + " " + base_of(known.facts) +
                   ": CRIU runs tar for each tmpfs, also for an empty one.",
               "20 % " + base_of(known.facts) + kLongPhase,
               "Mount fewer tmpfs, and keep less in them. (A container mostly has some that were "
               "not asked for, such as /dev/shm.)"};
}

std::optional<Cause> network(const Known& known) {
  const double share = share_of_long_phase(known, criu::kNetworkPhase);
  if (share == 0) return {};
  // Without the lock, the peer would end a connection that is dumped.
  const char* advice = "";
  if (!known.facts.connections) {
    advice = known.facts.container
                 ? "If nothing in it has an open TCP connection, let CRIU leave it alone: the line "
                   "network-lock skip in /etc/criu/runc.conf."
                 : "If nothing in it has an open TCP connection, let CRIU leave it alone: dump "
                   "with --network-lock skip.";
  }
  return Cause{"network-lock",
               "locked the network",
               share,
               "CRIU locked and unlocked the network of its namespace for " + whole_percent(share) +
                   " " + base_of(known.facts) + " (nftables or iptables).",
               "20 % " + base_of(known.facts) + kLongPhase,
               advice,
               known.facts.connections ? std::nullopt : left_after(known, share * 3 / 4, share)};
}

std::optional<Cause> memory_released(const Known& known) {
  constexpr double kMinShare = 0.20;
  const double share = known.share_of_phase(criu::kEndPhase);
  // Without CRIU's log, the scripts that it runs before are part of this phase.
  const bool with_scripts = is_undivided(known) && !known.facts.scripts.empty();
  if (!known.facts.ended || share < kMinShare || with_scripts) return {};
  return Cause{"memory-released",
               "kernel released the memory",
               share,
               "The kernel took back the memory of the ended processes for " +
                   whole_percent(share) + " " + base_of(known.facts) + ".",
               "20 % " + base_of(known.facts),
               "To get the answer earlier, dump with --leave-running and end the processes "
               "afterwards."};
}

std::optional<Cause> rehearsed(const Known& known) {
  constexpr double kMinShare = 0.10;
  const double share = known.share_of_phase(kRehearsalPhase);
  if (share < kMinShare) return {};
  return Cause{
      "rehearsal",
      "rehearsal of the restore",
      share,
      "kymod rehearsed the restore for " + whole_percent(share) + " " + base_of(known.facts) +
          ", as --prove asks for.",
      "10 % " + base_of(known.facts),
      "Without --prove, kymo verify --rehearse can do it later: of containerd and Docker only "
      "while the container runs."};
}

std::optional<Cause> page_faults(const Known& known) {
  constexpr double kMinShare = 0.30;
  constexpr double kFaultNs = 3500;  // measured: 3.5 us where memory is at hand
  if (!known.facts.restore || !known.facts.signals.faults) return {};
  const auto faults = static_cast<double>(*known.facts.signals.faults);
  const double share = std::min(known.share_of_phase("memory: reading pages"),
                                ratio(faults * kFaultNs, known.length_ns()));
  if (share < kMinShare) return {};
  return Cause{"page-faults",
               "page faults",
               share,
               "The kernel supplied the memory in " +
                   human::with_commas(*known.facts.signals.faults) +
                   " page faults: this took about " + whole_percent(share) + " " +
                   base_of(known.facts) + ".",
               "30 % " + base_of(known.facts),
               ""};
}

std::optional<Cause> many_processes(const Known& known) {
  constexpr std::uint64_t kMinProcesses = 32;
  constexpr double kMinShare = 0.40;
  constexpr double kMinNs = 50.0 * kNsPerMs;
  const Facts& facts = known.facts;
  if (!facts.restore || !facts.shape) return {};
  // A thread takes about a tenth of what a process takes, as in objects_of().
  const bool threads = more_threads(*facts.shape) > 10 * facts.shape->processes;
  const std::uint64_t count = threads ? facts.shape->threads : facts.shape->processes;
  if (count < (threads ? 10 * kMinProcesses : kMinProcesses)) return {};
  const double share = known.share_of_phase("processes and files") - known.held_up_share();
  if (share < kMinShare || share * known.length_ns() < kMinNs) return {};
  const double each_ns = ratio(share * known.length_ns(), static_cast<double>(count));
  std::string evidence = "Creating " + human::with_commas(count) +
                         (threads ? " threads" : " processes with their files") + " took " +
                         whole_percent(share) + " " + base_of(facts) + ", about " +
                         human::duration(each_ns) + " for each";
  if (facts.restored && !threads) {
    evidence += " (all forks together took " +
                human::duration(std::uint64_t{facts.restored->forking_time_us} * kNsPerUs) + ")";
  }
  return Cause{
      threads ? "many-threads" : "many-processes",
      threads ? "many threads" : "many processes",
      share,
      evidence + ".",
      (threads ? "320 threads, 40 % " : "32 processes, 40 % ") + base_of(facts) + ", and 50 ms",
      threads ? kFewerThreads : ""};
}

std::optional<Cause> kernel_probed(const Known& known) {
  constexpr std::uint64_t kMinNs = 20 * kNsPerMs;
  constexpr double kMinShare = 0.05;
  const std::uint64_t took_ns = time_in(known.facts.phases, "look at the kernel");
  const std::uint64_t ns =
      took_ns - std::min(took_ns, known.facts.signals.probe_held_ns.value_or(0));
  const auto whole = static_cast<double>(known.facts.duration_ns);
  if (ns < kMinNs || ratio(static_cast<double>(ns), whole) < kMinShare) return {};
  return Cause{
      "kernel-probed", "tested the kernel first",
      // In a dump, the tests come before the freeze, so they do not lengthen the standstill.
      known.facts.restore ? ratio(static_cast<double>(ns), whole) : 0,
      "Before all else, CRIU needed " + human::duration(ns) + " to test what the kernel can do.",
      std::string("20 ms, and 5 % of the ") + (known.facts.restore ? "restore" : "dump"),
      known.facts.kernel_known
          ? "CRIU keeps the result in /run/criu.kdat until the next boot, so later dumps and "
            "restores are spared this."
          : "CRIU repeats this each time, because it keeps the result only if /run is a tmpfs. Run "
            "at boot, before other programs use /run: mount -t tmpfs tmpfs /run (in a container, "
            "start it with --tmpfs /run)."};
}

constexpr std::array<Rule, 13> kWorkRules = {
    host_memory, many_mappings,  scattered_memory, copying, slow_freeze,
    rehearsed,   many_things,    mounts,           network, memory_released,
    page_faults, many_processes, kernel_probed};

}  // namespace

std::span<const Rule> work_rules() {
  return kWorkRules;
}

bool needs_shape(const Facts& facts) {
  // 10,000 mappings, from which on many_mappings() speaks, take more than this, too.
  constexpr std::uint64_t kMinNs = 50 * kNsPerMs;
  std::uint64_t worked_ns = 0;
  for (const Phase& phase : facts.phases) {
    const bool of_others = phase.name == criu::kFreezePhase || phase.name == criu::kHooksPhase ||
                           phase.name == criu::kAnswerPhase || phase.name == kRehearsalPhase ||
                           phase.name == criu::kSyncPhase || phase.name == criu::kWritePagesPhase;
    const bool counts =
        facts.restore ? phase.name == "processes and files" : phase.frozen && !of_others;
    if (counts) worked_ns += phase.end_ns - phase.begin_ns;
  }
  const bool much_memory =
      !facts.restore && (!facts.dump || facts.dump->all_pages_written() >= kMinMemoryPages);
  return facts.phases.empty() || much_memory || worked_ns >= kMinNs;
}

}  // namespace kymo::diagnosis
