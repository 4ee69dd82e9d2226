#include "checkpoint/criu/drive/phases.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <span>

#include "base/human.h"
#include "checkpoint/criu/drive/action_script.h"
#include "checkpoint/criu/drive/log_lines.h"

namespace kymo::criu {
namespace {

// A line that begins with `text` begins the phase. If `after` is set, the next line begins it. If `resumes` is
// set, the phase before goes on once the pages of one piece of shared memory are written. If `before` is set, the
// time since this phase seemed to begin belongs to that one.
struct Mark {
  std::string_view text;
  std::string_view phase;
  bool after = false;
  bool resumes = false;
  std::string_view before{};
};

constexpr std::string_view kProcesses = "processes and files";
constexpr std::string_view kCollect = "collect";
constexpr std::string_view kFilesOfProcess = "files and mappings";
constexpr std::string_view kMemory = "memory";
constexpr std::string_view kReadPages = "memory: reading pages";
constexpr std::string_view kOpenedReadMark = "Opened local page read";
constexpr std::string_view kOwnPagesReadMark = "nr_restored_pages:";
constexpr std::string_view kCreatePipeMark = "page-pipe: Create page pipe";
constexpr std::string_view kKillPipeMark = "page-pipe: Killing page pipe";
constexpr std::string_view kMemfdMark = "Dumping memfd:";
constexpr std::string_view kSharedMark = "Dumping shared memory ";
constexpr std::string_view kHooksMark = "Running ";
constexpr std::string_view kHooksMarkEnd = " scripts";
constexpr std::string_view kOverRpc = "RPC";
constexpr std::string_view kScriptMark = "\t[";  // with its path and "]"

// The texts are CRIU's own (criu/cr-dump.c, seize.c, mem.c). Their order does not matter: each mark
// in the log changes the phase.
constexpr std::array kDumpMarks{
    Mark{"Dumping processes (pid", kFreezePhase},
    Mark{"Pre-dumping processes (pid", kFreezePhase},
    // CRIU runs the scripts before it freezes. Below level 4 it has no line for that.
    Mark{"Searching irmap cache in work dir", kFreezePhase, false, false, kHooksPhase},
    Mark{"Lock network", kCollect},
    Mark{"Dumping task (pid", kCollect},
    Mark{"Pre-dumping task (pid", kCollect},
    Mark{"Collecting mappings (pid", kCollect},
    Mark{"Parasite syscall_ip at", kProcesses},            // at level 4
    Mark{"Set up parasite blob using memfd", kProcesses},  // at level 3, a moment later
    Mark{"Dumping opened files (pid", kProcesses},
    Mark{"Dumping pages (type", kMemory},
    Mark{kKillPipeMark, kProcesses, true},
    // Shared memory: of memfd_create and, on newer kernels, of mmap; of mmap on older kernels; of System V.
    Mark{kMemfdMark, kSharedMemoryPhase, false, true},
    Mark{kSharedMark, kSharedMemoryPhase, false, true},
    Mark{"IPC shared memory segments: 0", kProcesses},
    Mark{"IPC shared memory segments: ", kSharedMemoryPhase},
    Mark{"IPC message queues: ", kProcesses},
    Mark{"Dumping core (pid", kProcesses},
    Mark{"Dumping core for thread", kProcesses},
    Mark{"Waiting for ", kProcesses},
    Mark{"Dumping mm (pid", kProcesses},
    Mark{"Dumping file-locks", kProcesses},
    Mark{"Dumping pstree (pid", kProcesses},
    Mark{"Dumping mountpoints", kMountsPhase},
    Mark{"Writing image inventory", kHooksPhase},  // the last image: then it runs the scripts
    Mark{"Unlock network", kNetworkPhase},
    Mark{"Unfreezing tasks into", kEndPhase},
    Mark{"Writing stats", kFinishPhase},
};

// From criu/cr-restore.c.
constexpr std::array kRestoreMarks{
    Mark{"Will restore in", "read the images"}, Mark{"Forking task with", kProcesses},
    Mark{"Unlock network", kResumePhase},       Mark{"Restore finished successfully", kFinishPhase},
    Mark{"Writing stats", kFinishPhase},
};

// The marks in the lines of any process that change the phase of the whole restore. CRIU reads most pages
// from files when it has switched to the restorer (Preadv), but those of a stream before that, and then
// those of shared memory.
constexpr std::array kReadingMarks{
    Mark{kOpenedReadMark, kReadPages},
    Mark{kOwnPagesReadMark, kProcesses},
    Mark{"Restore via sigreturn", kProcesses},
    Mark{"Preadv ", kReadPages},
    Mark{"`- returned", kProcesses, true},
    Mark{"Restoring IPC message queues", kProcesses},
    Mark{"Restoring mount namespace", kMountsPhase},
    Mark{"Restoring children in alien sessions", kProcesses},
};

// The marks in the lines of one process.
constexpr std::array kProcessMarks{
    Mark{"timens:", "namespaces"},
    Mark{"cg: ", "namespaces"},
    Mark{"Preparing info about shared resources", "prepare"},
    Mark{kOpenedReadMark, kMemory},
    Mark{"Restoring IPC message queues", "namespaces"},
    Mark{kOwnPagesReadMark, "prepare"},
    Mark{"Restoring resources", kFilesOfProcess},
    Mark{"Restore via sigreturn", kFilesOfProcess},
    Mark{"Switched to the restorer", kFilesOfProcess},
    Mark{"Preadv ", kMemory},
    Mark{"`- returned", "registers and threads", true},
    Mark{"Restored", "wait for the others", true},
};

bool holds(std::string_view text, std::string_view mark) {
  return text.find(mark) != std::string_view::npos;
}

// CRIU's own text is at the beginning of a line, sometimes after a word for a part of CRIU ("net: ").
// Do not search the rest of the line: it can have names of files, which may look like a mark.
bool begins_with(std::string_view text, std::string_view mark) {
  if (text.starts_with(mark)) {
    return true;
  }
  const std::size_t part = text.find(' ');
  return part != std::string_view::npos && part > 0 && text[part - 1] == ':' &&
         text.substr(part + 1).starts_with(mark);
}

bool is_hook(std::string_view text) {
  return text.starts_with(kHooksMark) && holds(text, kHooksMarkEnd);
}

// After these scripts CRIU locks or unlocks the network of a namespace itself, by nftables or iptables, and has no line for
// that. It takes much longer than a container runtime's answer.
std::string_view phase_of_hook(std::string_view text) {
  return holds(text, " network-lock ") || holds(text, " network-unlock ") ? kNetworkPhase
                                                                          : kHooksPhase;
}

// Whether CRIU gave up before it had stopped a task. Only the log of a dump that CRIU itself ended shows
// that: if CRIU was killed, it may have been about to stop one. A log below level 3 never shows that a task
// was stopped, and does not have the line with which the dump begins either.
class StoppedNone {
 public:
  void line(std::string_view text) {
    began_ = began_ || begins_with(text, "Dumping processes (pid") ||
             begins_with(text, "Pre-dumping processes (pid");
    // A freezer of cgroups stops tasks before they are seized. CRIU says "SEIZE 7: ..." of a task to which
    // it is attached, but which it could not stop as it should: that one may have stood still for a moment.
    stopped_ = stopped_ || begins_with(text, "Seized task") ||
               begins_with(text, "freezing processes") || holds(text, "SEIZE ");
    gave_up_ = gave_up_ || (text.starts_with("Error (") && (holds(text, "): Dumping FAILED") ||
                                                            holds(text, "): Pre-dumping FAILED")));
  }
  [[nodiscard]] bool answer() const { return began_ && gave_up_ && !stopped_; }

 private:
  bool began_ = false;
  bool stopped_ = false;
  bool gave_up_ = false;
};

// Finds the longest time between two lines.
class LongestPause {
 public:
  // `counts`: the time since the last line does.
  void line(const LogLine& line, bool counts) {
    constexpr std::size_t kMaxText = 200;
    const std::uint64_t length_us = line.time_us - std::min(before_.time_us, line.time_us);
    if (counts && length_us > longest_.length_us) {
      longest_ = {length_us, std::string(before_.text.substr(0, kMaxText)),
                  std::string(line.text.substr(0, kMaxText))};
    }
    before_ = line;
  }
  LogPause take() { return std::move(longest_); }

 private:
  LogLine before_;  // the log outlives it
  LogPause longest_;
};

// Divides a log into phases, line by line.
class Partition {
 public:
  explicit Partition(std::string_view first) : first_(first) {}

  // The time from the last line to this one belongs to the current phase.
  void line(const LogLine& line, std::span<const Mark> marks) {
    if (begin_.phase.empty()) {
      last_us_ = line.time_us;
      begin_ = {first_, line.time_us, 0, std::string(line.text)};
    }
    if (in_hook_ && line.text.starts_with(kScriptMark)) {
      begin_script(line);
    } else if (in_hook_ && !holds(line.text, kOverRpc)) {
      in_hook_ = false;
      change(resumed_, line.time_us, std::string(line.text));
    }
    if (pending_) {
      change(pending_->phase, line.time_us, "behind " + std::string(pending_->text));
      pending_.reset();
    }
    const bool ended_shared = in_shared_ && follow_shared(line);
    if (is_hook(line.text)) {
      resumed_ = begin_.phase;
      change(phase_of_hook(line.text), line.time_us, std::string(line.text));
      in_hook_ = true;
    }
    for (const Mark& mark : marks) {
      if (!in_hook_ && !ended_shared && begins_with(line.text, mark.text)) {
        const bool goes_on = begin_.phase == mark.phase && begin_.begin_us < line.time_us;
        if (goes_on && !mark.before.empty()) begin_.phase = mark.before;
        if (mark.resumes) {
          begin_shared(mark, line);
        } else if (mark.after) {
          pending_ = mark;
        } else {
          change(mark.phase, line.time_us, std::string(line.text));
        }
        break;
      }
    }
    last_us_ = line.time_us;
  }

  // The phase begins with this line, to which line() is passed, too.
  void begin(std::string_view phase, const LogLine& line) {
    if (!begin_.phase.empty()) change(phase, line.time_us, std::string(line.text));
  }

  // Whether what comes now is the work on all but the memory.
  [[nodiscard]] bool in_things() const {
    return begin_.phase == kProcesses || begin_.phase == kCollect;
  }

  std::vector<LogPhase> finish() {
    if (!begin_.phase.empty()) {
      end_stretch(last_us_);
    }
    // A script may run until CRIU ends, after the last line.
    if (begin_.of_script && begin_.begin_us == last_us_) add_stretch(last_us_);
    return std::move(phases_);
  }

  // The stretches in their order, for use after finish().
  std::vector<PhaseStretch> take_stretches() { return std::move(stretches_); }

 private:
  struct Stretch {
    std::string_view phase;
    std::uint64_t begin_us = 0;
    std::uint64_t uncertainty_us = 0;
    std::string evidence;
    bool of_script = false;  // which has a line of its own
  };

  // Before the line of the first script, CRIU does nothing. After the scripts for the network, it works itself.
  void begin_script(const LogLine& line) {
    if (begin_.phase == kNetworkPhase) return;
    const std::string_view path = line.text.substr(kScriptMark.size());
    const std::string_view phase = ActionScript::is_path(path) ? kAnswerPhase : kHooksPhase;
    if (begin_.of_script) {
      change(phase, line.time_us, std::string(line.text));
    } else {
      begin_.phase = phase;
    }
    begin_.of_script = true;
  }

  void begin_shared(const Mark& mark, const LogLine& line) {
    if (begin_.phase != mark.phase) before_shared_ = begin_.phase;
    change(mark.phase, line.time_us, std::string(line.text));
    in_shared_ = true;
    in_pieces_ = false;
  }

  // Ends the phase of shared memory if this line shows that all is written. From level 4 on CRIU logs each piece,
  // down to the line with which it gives its pipe back. At level 3, the next line is about something else.
  // Returns whether the line is that one.
  bool follow_shared(const LogLine& line) {
    if (begins_with(line.text, kKillPipeMark)) {
      pending_ = Mark{kKillPipeMark, before_shared_, true};
      in_shared_ = false;
      return true;
    }
    in_pieces_ = in_pieces_ || begins_with(line.text, kCreatePipeMark);
    const bool another = begins_with(line.text, kMemfdMark) ||
                         begins_with(line.text, kSharedMark) ||
                         begins_with(line.text, "Could not access map_files");
    if (!in_pieces_ && !another) change(before_shared_, line.time_us, std::string(line.text));
    return false;
  }

  void change(std::string_view phase, std::uint64_t time_us, std::string evidence) {
    in_shared_ = in_shared_ && phase == begin_.phase;
    if (phase != begin_.phase) {
      end_stretch(time_us);
      begin_ = {phase, time_us, time_us - last_us_, std::move(evidence)};
    }
  }

  void end_stretch(std::uint64_t end_us) {
    if (end_us == begin_.begin_us) {
      return;
    }
    auto known = std::find_if(phases_.begin(), phases_.end(),
                              [&](const LogPhase& phase) { return phase.name == begin_.phase; });
    if (known == phases_.end()) {
      known = phases_.insert(phases_.end(),
                             LogPhase{std::string(begin_.phase), 0, 0, begin_.evidence, {}});
    }
    known->duration_us += end_us - begin_.begin_us;
    known->uncertainty_us += begin_.uncertainty_us;
    known->spans.push_back({begin_.begin_us, end_us});
    add_stretch(end_us);
  }

  void add_stretch(std::uint64_t end_us) {
    stretches_.push_back({std::string(begin_.phase), begin_.begin_us, end_us, begin_.uncertainty_us,
                          begin_.evidence});
  }

  std::string_view first_;
  Stretch begin_;             // the current stretch
  std::string_view resumed_;  // the phase that goes on after the hook
  bool in_hook_ = false;
  std::string_view before_shared_;  // the phase that goes on after shared memory
  bool in_shared_ = false;          // CRIU writes one piece of it
  bool in_pieces_ = false;          // and the log has the lines of its pages
  std::optional<Mark> pending_;     // its phase begins with the next line
  std::uint64_t last_us_ = 0;
  std::vector<LogPhase> phases_;
  std::vector<PhaseStretch> stretches_;
};

// Whether a process of a restore reads the pages of shared memory, by the lines that it wrote so far.
class SharedReads {
 public:
  // Returns whether it has just read the last one: this line is about something else.
  bool ends_at(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    if (text.starts_with(kOwnPagesReadMark)) own_are_read_ = true;
    // CRIU reads what is shared after the process's own pages, with its files.
    if (own_are_read_ && text.starts_with(kOpenedReadMark)) reads_ = true;
    if (!reads_ || is_of_a_read(text)) return false;
    reads_ = false;
    return true;
  }

 private:
  static bool is_of_a_read(std::string_view text) {
    const bool piece =
        text.starts_with("pr") && text.size() > 2 && text[2] >= '0' && text[2] <= '9';
    return piece || text.starts_with(kOpenedReadMark) || text.starts_with("parent has ");
  }

  bool own_are_read_ = false;
  bool reads_ = false;
};

struct Numbered {
  pid_t pid = 0;  // 0: none
  std::string_view text;
};

// Parses a line of one process: "pie: 7: text" or " 7: text".
Numbered of_process(std::string_view text) {
  std::string_view rest = text;
  constexpr std::string_view kPie = "pie:";
  if (rest.starts_with(kPie)) {
    rest.remove_prefix(kPie.size());
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(rest.begin(), rest.end(), pid);
  if (error != std::errc() || end == rest.end() || *end != ':' || pid <= 0) {
    return {0, text};
  }
  rest.remove_prefix(static_cast<std::size_t>(end - rest.begin()) + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return {pid, rest};
}

LogPhase* find(std::vector<LogPhase>& phases, std::string_view name) {
  const auto found = std::find_if(phases.begin(), phases.end(),
                                  [&](const LogPhase& phase) { return phase.name == name; });
  return found == phases.end() ? nullptr : &*found;
}

std::string duration_text(std::uint64_t us) {
  return human::duration(us * 1000);
}

// The time at which a stretch of the memory phase changes from finding pages to writing them.
// Both alternate too often for marks in the log, but CRIU has the sum of the writing. So each
// stretch shows first the finding and then the writing.
std::uint64_t border_of(std::uint64_t begin_us, std::uint64_t end_us, double share) {
  const double length = static_cast<double>(end_us - begin_us);
  return end_us - static_cast<std::uint64_t>(std::llround(length * share));
}

void split_stretches(double share, std::vector<PhaseStretch>& stretches) {
  std::vector<PhaseStretch> split;
  for (PhaseStretch& stretch : stretches) {
    if (stretch.name != kMemory) {
      split.push_back(std::move(stretch));
      continue;
    }
    const std::uint64_t border = border_of(stretch.begin_us, stretch.end_us, share);
    const std::uint64_t unknown = std::min(border - stretch.begin_us, stretch.end_us - border);
    if (border > stretch.begin_us) {
      split.push_back({std::string(kFindPagesPhase), stretch.begin_us, border,
                       stretch.uncertainty_us, stretch.evidence});
    }
    if (stretch.end_us > border) {
      split.push_back({std::string(kWritePagesPhase), border, stretch.end_us, unknown,
                       std::string(kFromStatistics)});
    }
  }
  stretches = std::move(split);
}

void split_memory(const DumpStats& stats, LogPhases& all) {
  const auto memory = std::find_if(all.phases.begin(), all.phases.end(),
                                   [](const LogPhase& phase) { return phase.name == kMemory; });
  if (memory == all.phases.end() || memory->duration_us == 0) {
    return;
  }
  if (stats.memwrite_time_us > memory->duration_us) {
    all.notes.push_back("CRIU says that writing memory took " +
                        duration_text(stats.memwrite_time_us) +
                        ", longer than the log shows: the wall clock was set meanwhile");
    return;
  }
  LogPhase write{
      std::string(kWritePagesPhase), stats.memwrite_time_us, 0, std::string(kFromStatistics), {}};
  const double share =
      static_cast<double>(write.duration_us) / static_cast<double>(memory->duration_us);
  for (PhaseSpan& span : memory->spans) {
    const std::uint64_t border = border_of(span.begin_us, span.end_us, share);
    write.spans.push_back({border, span.end_us});
    span.end_us = border;
  }
  memory->name = kFindPagesPhase;
  memory->duration_us -= write.duration_us;
  all.phases.insert(memory + 1, std::move(write));
  split_stretches(share, all.stretches);
}

void explain(std::string_view log, std::vector<LogPhase>& phases, std::vector<std::string>& notes) {
  constexpr std::uint64_t kWorthTelling = 10'000;
  const LogPhase* before = find(phases, kProbePhase);
  if (before != nullptr && before->duration_us >= kWorthTelling &&
      holds(log.substr(0, 4096), "criu.kdat does not exist")) {
    notes.push_back("of which " + duration_text(before->duration_us) +
                    " to look at the kernel: CRIU does it each time if it cannot keep the result "
                    "in /run/criu.kdat (it can if /run is a tmpfs)");
  }
}

void explain_dump(std::vector<LogPhase>& phases, std::vector<std::string>& notes) {
  const LogPhase* end = find(phases, kEndPhase);
  if (end != nullptr && holds(end->evidence, "into 2") && end->duration_us > 10'000) {
    notes.push_back("ending the processes took " + duration_text(end->duration_us) +
                    ": the kernel took their memory back");
  }
}

void note_missing(const LogPhases& all, std::vector<std::string>& notes) {
  if (all.phases.size() == 1) {
    notes.emplace_back(
        "the log has no lines that begin a phase: CRIU failed early, or this kymo does not know "
        "its version");
  }
}

}  // namespace

std::optional<LogLine> parse_log_line(std::string_view line) {
  if (line.empty() || line.front() != '(') {
    return {};
  }
  constexpr double kMaxSeconds = 1e9;
  double seconds = 0;
  const auto [end, error] = std::from_chars(line.begin() + 1, line.end(), seconds);
  if (error != std::errc() || end == line.end() || *end != ')' || !(seconds >= 0) ||
      seconds > kMaxSeconds) {
    return {};
  }
  std::string_view text = line.substr(static_cast<std::size_t>(end - line.begin()) + 1);
  if (text.starts_with(' ')) {
    text.remove_prefix(1);
  }
  return LogLine{static_cast<std::uint64_t>(std::llround(seconds * 1e6)), text};
}

LogPhases dump_phases(std::string_view log, const std::optional<DumpStats>& stats) {
  LogPhases all;
  all.statistics = stats;
  Partition partition(kProbePhase);
  StoppedNone stopped_none;
  LongestPause longest_pause;
  all.total_us = each_line(log, all.notes, [&](const LogLine& line) {
    longest_pause.line(line, partition.in_things());
    partition.line(line, kDumpMarks);
    stopped_none.line(line.text);
  });
  all.stopped_none = stopped_none.answer();
  all.longest_pause = longest_pause.take();
  all.phases = partition.finish();
  all.stretches = partition.take_stretches();
  if (all.phases.empty()) {
    return all;
  }
  note_missing(all, all.notes);
  explain(log, all.phases, all.notes);
  explain_dump(all.phases, all.notes);
  if (stats) {
    split_memory(*stats, all);
  }
  return all;
}

LogPhases restore_phases(std::string_view log, const std::optional<RestoreStats>& stats) {
  LogPhases all;
  Partition partition(kProbePhase);
  std::map<pid_t, Partition> processes;
  std::map<pid_t, SharedReads> shared;
  all.total_us = each_line(log, all.notes, [&](const LogLine& line) {
    const Numbered numbered = of_process(line.text);
    if (numbered.pid == 0) {
      partition.line(line, kRestoreMarks);
      return;
    }
    const LogLine own{line.time_us, numbered.text};
    Partition& process = processes.try_emplace(numbered.pid, "fork").first->second;
    if (shared[numbered.pid].ends_at(numbered.text)) {
      partition.begin(kProcesses, own);
      process.begin(kFilesOfProcess, own);
    }
    partition.line(own, kReadingMarks);
    process.line(own, kProcessMarks);
  });
  all.phases = partition.finish();
  all.stretches = partition.take_stretches();
  if (all.phases.empty()) {
    return all;
  }
  for (auto& [pid, one] : processes) {
    all.processes.push_back({pid, one.finish()});
  }
  note_missing(all, all.notes);
  explain(log, all.phases, all.notes);
  if (stats && stats->restore_time_us > all.total_us) {
    all.notes.push_back("CRIU says that the restore took " + duration_text(stats->restore_time_us) +
                        ", longer than the log shows: the wall clock was set meanwhile");
  }
  return all;
}

}  // namespace kymo::criu
