#include "checkpoint/diagnosis/phases.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_text.h"

namespace kymo::diagnosis {
namespace {

constexpr std::uint64_t kNanosecondsInAMicrosecond = 1000;
// A dump of thousands of processes alternates thousands of times between its phases.
constexpr std::size_t kMaxPhases = 400;
constexpr std::size_t kMaxEvidence = 80;

constexpr std::string_view kPreDumps = "pre-dump rounds";
constexpr std::string_view kUnknown = "not in CRIU's log";
constexpr std::string_view kAllWork = "memory, processes and files";
constexpr std::string_view kOurClock = "kymod's clock: ";

// The point in time at which a phase begins. The next cut ends it.
struct Cut {
  std::string name;
  std::uint64_t at_ns = 0;
  std::uint64_t uncertainty_ns = 0;
  std::string evidence;
};

// The phase that CRIU begins once a notification is answered.
struct AfterNotification {
  std::string_view notification;
  std::string_view phase;
};
constexpr std::array kAfterInDump{
    AfterNotification{"pre-dump", criu::kFreezePhase},
    AfterNotification{"network-lock", kAllWork},
    AfterNotification{"query-ext-files", kAllWork},
    AfterNotification{"post-dump", criu::kEndPhase},
    AfterNotification{"network-unlock", criu::kEndPhase},
    AfterNotification{"pre-resume", criu::kEndPhase},
    AfterNotification{"post-resume", criu::kFinishPhase},
};
constexpr std::array kAfterInRestore{
    AfterNotification{"pre-restore", kAllWork},
    AfterNotification{"setup-namespaces", kAllWork},
    AfterNotification{"post-setup-namespaces", kAllWork},
    AfterNotification{"post-restore", criu::kResumePhase},
    AfterNotification{"network-unlock", criu::kResumePhase},
    AfterNotification{"pre-resume", criu::kResumePhase},
    AfterNotification{"post-resume", criu::kFinishPhase},
};

std::string_view phase_after(std::string_view notification, bool restore) {
  const auto find = [&](const auto& table) -> std::string_view {
    for (const AfterNotification& row : table) {
      if (row.notification == notification) return row.phase;
    }
    return {};
  };
  return restore ? find(kAfterInRestore) : find(kAfterInDump);
}

std::string shown(std::string_view source, std::string_view line) {
  std::string text = valid_utf8(std::string(source) + std::string(line.substr(0, kMaxEvidence)));
  return text;
}

void add_log(const criu::LogPhases& log, std::uint64_t began_ns, std::uint64_t extra_ns,
             std::vector<Cut>& cuts) {
  for (const criu::PhaseStretch& stretch : log.stretches) {
    cuts.push_back({stretch.name, began_ns + stretch.begin_us * kNanosecondsInAMicrosecond,
                    stretch.uncertainty_us * kNanosecondsInAMicrosecond + extra_ns,
                    stretch.evidence == criu::kFromStatistics
                        ? stretch.evidence
                        : shown("CRIU's log: ", stretch.evidence)});
  }
}

// The phases by the notifications after `from_ns`, where the log shows nothing.
bool add_notifications(const RequestTimes& times, std::uint64_t from_ns, std::vector<Cut>& cuts) {
  bool any = false;
  std::uint64_t before_ns = from_ns;
  for (const Notification& notification : times.notifications) {
    const std::string_view phase = phase_after(notification.name, times.restore);
    const std::uint64_t at_ns = std::max(notification.at_ns, answered_ns(times, notification));
    if (phase.empty() || at_ns < from_ns) continue;
    any = true;
    cuts.push_back({std::string(phase), at_ns, at_ns - before_ns,
                    shown("CRIU's notification: ", notification.name)});
    before_ns = at_ns;
  }
  return any;
}

// Whether the log is that of a dump, but has no line of its phases: at level 1 CRIU logs only errors.
bool shows_nothing(const RequestTimes& times, const criu::LogPhases& log) {
  const bool only_errors = std::all_of(
      log.stretches.begin(), log.stretches.end(),
      [](const criu::PhaseStretch& stretch) { return stretch.name == criu::kProbePhase; });
  return only_errors && std::any_of(times.notifications.begin(), times.notifications.end(),
                                    [](const Notification& one) { return one.name == "pre-dump"; });
}

// A freeze that no notification ends may have ended long before the next cut.
void mark_undivided(std::vector<Cut>& cuts) {
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const bool ends_there = i + 1 < cuts.size() && cuts[i + 1].name == kAllWork;
    if (cuts[i].name == criu::kFreezePhase && !ends_there) cuts[i].name = kUndividedPhase;
  }
}

// Divides the last stretch of all work, or the undivided one, which ends at `end_ns`, into parts whose
// lengths CRIU's statistics have. The parts stand in the order in which CRIU begins them; it may alternate
// between them.
void divide(const criu::DumpStats& stats, std::uint64_t end_ns, std::vector<Cut>& cuts) {
  const auto is_undivided = [](const Cut& cut) {
    return cut.name == kAllWork || cut.name == kUndividedPhase;
  };
  const auto last = std::find_if(cuts.rbegin(), cuts.rend(), is_undivided);
  if (last == cuts.rend()) return;
  auto after = last.base();
  auto first = after - 1;
  while (first != cuts.begin() && first->name == kAllWork && (first - 1)->name == kAllWork) --first;
  if (after != cuts.end()) end_ns = after->at_ns;
  const auto ns = [](std::uint64_t us) { return us * kNanosecondsInAMicrosecond; };
  const std::uint64_t freeze_ns = first->name == kUndividedPhase ? ns(stats.freezing_time_us) : 0;
  const std::uint64_t memory_ns = ns(stats.memdump_time_us);
  const std::uint64_t write_ns = std::min(ns(stats.memwrite_time_us), memory_ns);
  if (first->at_ns + freeze_ns + memory_ns > end_ns) return;  // measured while the clock was set
  const std::uint64_t memory_at_ns = end_ns - memory_ns;
  const std::uint64_t others_ns = memory_at_ns - first->at_ns - freeze_ns;
  std::vector<Cut> parts;
  const auto add = [&](std::string_view name, std::uint64_t at_ns) {
    parts.push_back({std::string(name), at_ns, others_ns, std::string(criu::kFromStatistics)});
  };
  if (freeze_ns != 0) {
    parts.push_back(
        {std::string(criu::kFreezePhase), first->at_ns, first->uncertainty_ns, first->evidence});
  }
  add(kAllButMemoryPhase, first->at_ns + freeze_ns);
  add(criu::kFindPagesPhase, memory_at_ns);
  add(criu::kWritePagesPhase, end_ns - write_ns);
  cuts.insert(cuts.erase(first, after), parts.begin(), parts.end());
}

std::uint64_t end_of_log(const criu::LogPhases& log, std::uint64_t began_ns) {
  return began_ns + log.total_us * kNanosecondsInAMicrosecond;
}

// When the log began. If no notification shows it, the log ends with CRIU at the latest.
std::uint64_t log_began(const RequestTimes& times, const criu::LogPhases& log,
                        std::uint64_t& unknown_ns) {
  if (log.stretches.empty()) return 0;
  if (times.log_began_ns != 0) return times.log_began_ns;
  const std::uint64_t total_ns = log.total_us * kNanosecondsInAMicrosecond;
  if (times.criu_ended_ns <= total_ns || times.criu_ended_ns < times.began_ns) return 0;
  const std::uint64_t began_ns = std::max(times.criu_ended_ns - total_ns, times.began_ns);
  unknown_ns = began_ns - std::max(times.began_ns, std::min(times.runtime_called_ns, began_ns));
  return began_ns;
}

// What CRIU did, from its first line or notification until it ended.
void add_criu(const RequestTimes& times, const criu::LogPhases& log, std::vector<Cut>& cuts) {
  std::uint64_t unknown_ns = 0;
  const std::uint64_t began_ns = shows_nothing(times, log) ? 0 : log_began(times, log, unknown_ns);
  if (began_ns == 0) {
    add_notifications(times, times.runtime_called_ns, cuts);
    mark_undivided(cuts);
    if (log.statistics) {
      divide(*log.statistics, times.criu_ended_ns != 0 ? times.criu_ended_ns : times.ended_ns,
             cuts);
    }
    return;
  }
  add_log(log, began_ns, unknown_ns, cuts);
  const std::uint64_t log_ended_ns = end_of_log(log, began_ns);
  const std::string& last = log.stretches.back().name;
  if (last == criu::kFinishPhase || last == criu::kHooksPhase || last == criu::kAnswerPhase) {
    if (times.container) {
      cuts.push_back({std::string(kRuntimePhase), log_ended_ns, 0, "CRIU's log: its last line"});
    }
    return;
  }
  if (!times.failed) {
    cuts.push_back({std::string(kUnknown), log_ended_ns, 0, "CRIU's log: its last line"});
  }
  add_notifications(times, log_ended_ns, cuts);
}

std::vector<Cut> cuts_of(const RequestTimes& times, const criu::LogPhases& log) {
  std::vector<Cut> cuts{
      {std::string(kPreparePhase), times.began_ns, 0, shown(kOurClock, "the request began")}};
  if (times.runtime_called_ns != 0) {
    const bool rounds = times.pre_dumps_ended_ns != 0;
    cuts.push_back({std::string(rounds ? kPreDumps : kStartPhase), times.runtime_called_ns, 0,
                    shown(kOurClock, times.container ? "the runtime was called" : "CRIU's start")});
    if (rounds) {
      cuts.push_back({std::string(kStartPhase), times.pre_dumps_ended_ns, 0,
                      shown(kOurClock, "the last round of pre-dump ended")});
    }
    add_criu(times, log, cuts);
  }
  if (times.criu_ended_ns != 0) {
    cuts.push_back({std::string(criu::kFinishPhase), times.criu_ended_ns, 0,
                    shown(kOurClock, times.container ? "the runtime ended" : "CRIU ended")});
  }
  return cuts;
}

std::vector<Phase> partition(const std::vector<Cut>& cuts, std::uint64_t began_ns,
                             std::uint64_t ended_ns) {
  std::vector<Phase> phases;
  std::uint64_t at_ns = began_ns;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    std::uint64_t next_ns = i + 1 < cuts.size() ? cuts[i + 1].at_ns : ended_ns;
    next_ns = std::clamp(next_ns, at_ns, ended_ns);
    if (next_ns == at_ns) continue;
    if (!phases.empty() && phases.back().name == cuts[i].name) {
      phases.back().end_ns = next_ns - began_ns;
    } else {
      phases.push_back({cuts[i].name, at_ns - began_ns, next_ns - began_ns, cuts[i].uncertainty_ns,
                        cuts[i].evidence});
    }
    at_ns = next_ns;
  }
  return phases;
}

// Cuts the time of `hook` out of the phases, as a stretch of its own.
std::vector<Phase> with_hook(const std::vector<Phase>& phases, const Phase& hook) {
  std::vector<Phase> cut;
  for (const Phase& phase : phases) {
    const std::uint64_t begin = std::max(phase.begin_ns, hook.begin_ns);
    const std::uint64_t end = std::min(phase.end_ns, hook.end_ns);
    if (begin >= end || phase.name == hook.name) {
      cut.push_back(phase);
      continue;
    }
    Phase part = phase;
    part.end_ns = begin;
    if (part.end_ns > part.begin_ns) cut.push_back(part);
    part = hook;
    part.begin_ns = begin;
    part.end_ns = end;
    if (!cut.empty() && cut.back().name == hook.name) {
      cut.back().end_ns = end;
    } else {
      cut.push_back(part);
    }
    part = phase;
    part.begin_ns = end;
    part.uncertainty_ns = 0;
    part.evidence = shown(kOurClock, "the notification was answered");
    if (part.end_ns > part.begin_ns) cut.push_back(part);
  }
  return cut;
}

void add_hook(const RequestTimes& times, const Notification& at, std::string_view name,
              std::string_view source, std::vector<Phase>& phases) {
  const auto since = [&](std::uint64_t at_ns) {
    return std::clamp(at_ns, times.began_ns, times.ended_ns) - times.began_ns;
  };
  const Phase hook{std::string(name), since(at.at_ns), since(answered_ns(times, at)), 0,
                   shown(source, at.name)};
  if (hook.end_ns > hook.begin_ns) phases = with_hook(phases, hook);
}

// Tells the time until kymod answered from that of other scripts. The log does so itself from level 4 on. CRIU runs
// kymod's script first.
void add_answers(const RequestTimes& times, std::vector<Phase>& phases) {
  if (time_in(phases, criu::kAnswerPhase) != 0) return;
  for (const Notification& notification : times.notifications) {
    add_hook(times, notification, criu::kAnswerPhase, "CRIU's notification: ", phases);
  }
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const bool before = i + 1 < phases.size() && phases[i + 1].name == criu::kAnswerPhase;
    if (phases[i].name == criu::kHooksPhase && (before || !times.others_scripts)) {
      phases[i].name = criu::kAnswerPhase;
    }
  }
}

// Whether CRIU freezes the processes in this phase.
bool is_of_criu(const Phase& phase) {
  return phase.name == criu::kFreezePhase || phase.name == kUndividedPhase;
}

// Whether CRIU freezes only after the scripts that follow this phase.
bool is_before_scripts(const std::vector<Phase>& phases, std::size_t at) {
  std::size_t next = at + 1;
  while (next < phases.size() &&
         (phases[next].name == criu::kHooksPhase || phases[next].name == criu::kAnswerPhase)) {
    ++next;
  }
  return next != at + 1 && next < phases.size() && is_of_criu(phases[next]);
}

// The index after the last phase of this name. 0: there is none.
std::size_t end_of(const std::vector<Phase>& phases, std::string_view name) {
  const auto last = std::find_if(phases.rbegin(), phases.rend(),
                                 [&](const Phase& phase) { return phase.name == name; });
  return static_cast<std::size_t>(phases.rend() - last);
}

// From the phase that freezes the processes until the one in which they run again.
void set_frozen(std::vector<Phase>& phases) {
  const std::size_t end =
      std::max({end_of(phases, criu::kEndPhase), end_of(phases, kRehearsalPhase),
                end_of(phases, criu::kSyncPhase)});
  bool frozen = false;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    frozen = frozen || phases[i].name == kPausePhase ||
             (is_of_criu(phases[i]) && !is_before_scripts(phases, i));
    const bool over = end != 0
                          ? i >= end
                          : phases[i].name == criu::kFinishPhase || phases[i].name == kRuntimePhase;
    phases[i].frozen = frozen && !over;
  }
}

// Merges the shortest stretches with their neighbours until few enough are left.
void limit(std::vector<Phase>& phases) {
  for (std::uint64_t shortest_ns = 10'000; phases.size() > kMaxPhases; shortest_ns *= 2) {
    std::vector<Phase> fewer;
    for (Phase& phase : phases) {
      if (fewer.empty() ||
          (phase.name != fewer.back().name && phase.duration_ns() >= shortest_ns)) {
        fewer.push_back(std::move(phase));
      } else {
        fewer.back().end_ns = phase.end_ns;
        fewer.back().uncertainty_ns += phase.name == fewer.back().name ? 0 : phase.duration_ns();
      }
    }
    phases = std::move(fewer);
  }
}

std::optional<Phase> phase_from(const nlohmann::json& json) {
  const auto number = [&](const char* name) -> std::optional<std::uint64_t> {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number_unsigned()) return {};
    return found->get<std::uint64_t>();
  };
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return {};
  const auto begin = number("begin_ns");
  const auto end = number("end_ns");
  if (!begin || !end || *end < *begin) return {};
  Phase phase{
      json["name"].get<std::string>(), *begin, *end, number("uncertainty_ns").value_or(0), {}};
  const auto evidence = json.find("evidence");
  if (evidence != json.end() && evidence->is_string()) phase.evidence = *evidence;
  phase.frozen = json.value("frozen", nlohmann::json()) == nlohmann::json(true);
  return phase;
}

}  // namespace

std::uint64_t answered_ns(const RequestTimes& times, const Notification& notification) {
  if (notification.answered_ns != 0 || notification.at_ns == 0) return notification.answered_ns;
  return times.criu_ended_ns != 0 ? times.criu_ended_ns : times.ended_ns;
}

std::vector<Phase> phases_of(const RequestTimes& times, const criu::LogPhases& log) {
  if (times.ended_ns <= times.began_ns) return {};
  std::vector<Phase> phases = partition(cuts_of(times, log), times.began_ns, times.ended_ns);
  // The notifications of a container come from its log.
  if (!times.container) add_answers(times, phases);
  add_hook(times, times.paused, kPausePhase, kOurClock, phases);
  for (const Notification& work : times.own_work)
    add_hook(times, work, work.name, kOurClock, phases);
  limit(phases);
  const bool stood = !log.stopped_none || times.paused.at_ns != 0;
  if (!times.restore && stood) set_frozen(phases);
  return phases;
}

std::vector<Phase> phases_of_log(const criu::LogPhases& log, bool restore) {
  std::vector<Cut> cuts;
  add_log(log, 0, 0, cuts);
  std::vector<Phase> phases = partition(cuts, 0, end_of_log(log, 0));
  limit(phases);
  if (!restore && !log.stopped_none) set_frozen(phases);
  return phases;
}

std::vector<Phase> with_saving(std::vector<Phase> phases, std::uint64_t end_ns) {
  const std::uint64_t begin_ns = phases.empty() ? 0 : phases.back().end_ns;
  if (end_ns > begin_ns) {
    phases.push_back({std::string(kSavePhase), begin_ns, end_ns, 0,
                      shown(kOurClock, "the outcome was known"), false});
  }
  return phases;
}

std::uint64_t time_in(const std::vector<Phase>& phases, std::string_view name) {
  std::uint64_t sum = 0;
  for (const Phase& phase : phases) sum += phase.name == name ? phase.duration_ns() : 0;
  return sum;
}

std::uint64_t held_ns(const std::vector<Phase>& phases) {
  const std::size_t end = end_of(phases, criu::kEndPhase);
  std::uint64_t sum = 0;
  bool by_criu = false;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    by_criu = by_criu || is_of_criu(phases[i]);
    const bool over = end != 0 && i >= end;
    if (phases[i].frozen && (!by_criu || over)) sum += phases[i].duration_ns();
  }
  return sum;
}

std::uint64_t frozen_ns(const std::vector<Phase>& phases) {
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end = 0;
  for (const Phase& phase : phases) {
    if (!phase.frozen) continue;
    begin = std::min(begin, phase.begin_ns);
    end = std::max(end, phase.end_ns);
  }
  return end > begin ? end - begin : 0;
}

nlohmann::json to_json(const std::vector<Phase>& phases) {
  nlohmann::json json = nlohmann::json::array();
  for (const Phase& phase : phases) {
    json.push_back({{"name", phase.name},
                    {"begin_ns", phase.begin_ns},
                    {"end_ns", phase.end_ns},
                    {"uncertainty_ns", phase.uncertainty_ns},
                    {"evidence", phase.evidence},
                    {"frozen", phase.frozen}});
  }
  return json;
}

std::vector<Phase> phases_from(const nlohmann::json& json) {
  std::vector<Phase> phases;
  if (!json.is_array()) return phases;
  for (const nlohmann::json& one : json) {
    std::optional<Phase> phase = phase_from(one);
    if (!phase) return {};
    phases.push_back(*std::move(phase));
  }
  return phases;
}

}  // namespace kymo::diagnosis
