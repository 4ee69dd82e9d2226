#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/criu/drive/phases.h"

namespace kymo::diagnosis {

// A stretch of a request's time in which one kind of work was done. docs/phases.md describes each
// name. All times are nanoseconds since the request began.
struct Phase {
  std::string name;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t uncertainty_ns = 0;  // how much earlier the phase may have begun
  std::string evidence;              // what shows that it began
  bool frozen = false;               // the processes of the target stood still

  [[nodiscard]] std::uint64_t duration_ns() const { return end_ns - begin_ns; }
};

// A notification of CRIU. CRIU waits from `at_ns` to `answered_ns`. 0: until it ended, or until now.
struct Notification {
  std::string name;
  std::uint64_t at_ns = 0;
  std::uint64_t answered_ns = 0;
};

struct RequestTimes;
// When CRIU went on after a notification, or when its wait ended in another way.
std::uint64_t answered_ns(const RequestTimes& times, const Notification& notification);

// What is known of the times of a request. All times are on CLOCK_MONOTONIC. 0: it did not happen,
// or the time is unknown.
struct RequestTimes {
  bool restore = false;
  bool container = false;
  bool failed = false;  // CRIU may have been ended: what its log shows last, it did until then
  bool others_scripts = false;  // CRIU runs action scripts besides that of kymod
  std::uint64_t began_ns = 0;
  std::uint64_t runtime_called_ns = 0;
  std::uint64_t pre_dumps_ended_ns = 0;
  std::uint64_t log_began_ns = 0;   // the first line of CRIU's log
  std::uint64_t criu_ended_ns = 0;  // for a container: the end of the runtime's command
  std::uint64_t ended_ns = 0;
  std::vector<Notification> notifications;  // by time
  Notification paused{};                    // by its runtime, before CRIU began
  // What kymod did while CRIU waited for its answer, by time. The names are those of phases.
  std::vector<Notification> own_work;
};

// Divides the time of a request into phases, by CRIU's log, its notifications and our clock.
//
// If the log of a dump has too few lines, CRIU's statistics divide what the notifications show.
//
// The phases are in the order of time. The first begins at 0, each begins where the one before ends,
// and the last ends at `ended_ns - began_ns`, whatever the input is. If the log shows nothing, the
// phases are those that the notifications show. If `ended_ns` is not after `began_ns`, there are
// none.
// Cost: one pass over the stretches of the log.
std::vector<Phase> phases_of(const RequestTimes& times, const criu::LogPhases& log);

// The same from a log alone, for a checkpoint that nobody recorded. They begin with the log.
std::vector<Phase> phases_of_log(const criu::LogPhases& log, bool restore);

// From the answer to `pre-dump` to the next notification, if nothing shows how long CRIU froze in it.
inline constexpr std::string_view kUndividedPhase =
    "undivided: freeze, memory, processes and files";
// All of a dump but freezing and the memory, if CRIU's log does not divide it.
inline constexpr std::string_view kAllButMemoryPhase = "collect, processes and files";

// In this phase kymod does what must be done before CRIU is started.
inline constexpr std::string_view kPreparePhase = "prepare";
// From there until CRIU begins, by kymod or the container runtime.
inline constexpr std::string_view kStartPhase = "start CRIU";
// After the last line of CRIU's log, until the runtime of a container has ended.
inline constexpr std::string_view kRuntimePhase = "container runtime";

// In this phase of a dump kymod rehearses its restore.
inline constexpr std::string_view kRehearsalPhase = "rehearsal";
// In this phase of a dump the runtime of a container makes it stand still, before it starts CRIU.
inline constexpr std::string_view kPausePhase = "pause";

// In this phase kymod saves the outcome of a request, with its phases until then.
inline constexpr std::string_view kSavePhase = "save the record";

// The phases of a request whose outcome is saved since the last one ended, until `end_ns` after its beginning.
std::vector<Phase> with_saving(std::vector<Phase> phases, std::uint64_t end_ns);

// The sum of the phases with this name.
std::uint64_t time_in(const std::vector<Phase>& phases, std::string_view name);

// The time from the first stretch in which the processes stood still to the end of the last one.
std::uint64_t frozen_ns(const std::vector<Phase>& phases);
// How much of it was before CRIU froze them, or after CRIU let them go: their runtime held them.
std::uint64_t held_ns(const std::vector<Phase>& phases);

nlohmann::json to_json(const std::vector<Phase>& phases);
// Members of the wrong type make an empty list, because anybody may have written the JSON.
std::vector<Phase> phases_from(const nlohmann::json& json);

}  // namespace kymo::diagnosis
