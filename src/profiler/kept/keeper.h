#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/kept/store.h"

// The process that takes stacks all the time and keeps them. The program that starts it tells it by lines of
// text what to do:
//
//   program                                   keeper
//   order_text(), jobs_text() and
//   containers_text()                    ->   so that the first sample of a job has its name
//                                        <-   "ready", or "error WHY", after which it ends
//                                        <-   "no stacks WHY", if profiles are only pulled
//                                        <-   "trouble WHY", if a target cannot be asked
//   jobs_text() and containers_text(),
//   whenever they change                 ->
//                                        <-   each minute "kept SAMPLES LOST", or "failed LOST WHY" if it
//                                             could not be written, which is tried again
//                                        <-   "removed COUNTS" (removed_text()), if minutes were removed
//                                        <-   "pulled COUNTS" (pulled_text()), after a target was asked
//                                        <-   "note TEXT", for the log; nothing needs to be done
//
// The keeper ends when the program closes its end or is gone. First it keeps what it has taken of the minute
// in progress. Meanwhile the folder is free for another keeper. If it is killed, it loses that minute, and at
// most the minute before, which it may be writing.
namespace kymo::profiles {

// Where the targets are found whose profiles are pulled.
struct PullFrom {
  std::string
      place;  // a file, or the address of the API of Kubernetes (is_address()); empty: nothing is pulled
  std::string token_file;  // the token by which Kubernetes knows the caller; empty: none is sent
  // The authorities that may sign the certificate of an address with https. Empty: the system's.
  std::string ca_file;
};

struct KeeperOrder {
  std::string directory;  // of the store; it is made if it is missing
  unsigned rate = 0;      // samples a second of each CPU
  bool off_cpu = false;   // also keep where threads wait
  // What is kept: services (text_of()), cgroups (kOnlyCgroup with a text for cgroup_rule()), and containers by their
  // runtime and name (containers_text()). Empty: all.
  std::vector<std::string> only;
  Limits limits;
  PullFrom pull;
  int pull_every_s = 60;  // how often
};

// The names of the jobs that run, or have just ended, by the pid of their first process. If that
// process leads a session, all processes of the session belong to the job.
using JobSessions = std::map<pid_t, std::string>;

// Begins an entry of KeeperOrder::only.
inline constexpr const char* kOnlyCgroup = "cgroup:";

// How often targets were asked, and the results.
struct PullCounts {
  std::uint64_t asked = 0;
  std::uint64_t failed = 0;     // at least one profile was missing
  std::uint64_t timed_out = 0;  // those of `failed` in which an answer did not come in time
  std::uint64_t bytes = 0;      // of all answers

  bool operator==(const PullCounts&) const = default;
};

// Each is one line.
std::string order_text(const KeeperOrder& order);
std::string jobs_text(const JobSessions& jobs);
std::string containers_text(const std::vector<std::string>& cgroups);
// Read these lines. They return nothing if a line is not valid.
std::optional<KeeperOrder> order_in(std::string_view line);
std::optional<JobSessions> jobs_in(std::string_view line);
std::optional<std::vector<std::string>> containers_in(std::string_view line);
// A note that the clock of the machine was set since the minute `before`: it is `now`, and `passed` whole
// minutes have passed. Empty if it was not, or by so little that this is a usual correction of the clock.
std::string clock_note(std::int64_t before, std::int64_t now, std::int64_t passed);
// What stands behind kRemoved.
std::string removed_text(const Removed& removed);
std::optional<Removed> removed_in(std::string_view text);
// The counts behind kPulled.
std::string pulled_text(const PullCounts& counts);
std::optional<PullCounts> pulled_counts_in(std::string_view text);

inline constexpr const char* kReady = "ready";
inline constexpr const char* kError = "error ";
inline constexpr const char* kKept = "kept ";
inline constexpr const char* kFailed = "failed ";
inline constexpr const char* kNoStacks = "no stacks ";
inline constexpr const char* kTrouble = "trouble ";
inline constexpr const char* kPulled = "pulled ";
inline constexpr const char* kRemoved = "removed ";
inline constexpr const char* kNote = "note ";

// The first argument with which a program starts itself as a keeper.
inline constexpr const char* kKeeperArgument = "keep-profiles";

// The life of a keeper: reads from `orders` and writes to `answers`. Returns its exit code.
// Threads: the only one of the process.
int keep(int orders, int answers);

}  // namespace kymo::profiles
