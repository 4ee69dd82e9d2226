#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiler/kept/cgroup_rule.h"
#include "profiler/kept/keeper.h"
#include "profiler/kept/store.h"
#include "profiler/stacks/collection.h"

namespace kymo::profiles {

// A profile that a program of Go has made, in the format of pprof (pulled.h).
struct PulledProfile {
  std::string service;  // of all its stacks
  std::string profile;
};

// The stacks of one type and minute, their addresses not named yet. Until ServiceFinder::divide(), their services are
// not found either: `pid` is then the leader_of() the process, and `service` says whether its cgroup was chosen.
// Ownership: the modules of the frames belong to the StackTaker, or to this or a later minute that
//            it has taken.
struct TakenMinute {
  std::int64_t minute = 0;
  Type type = Type::cpu;
  std::uint64_t period_ns = 0;
  std::int64_t begin_unix_ns = 0;
  std::uint64_t duration_ns = 0;
  std::uint64_t lost = 0;  // samples
  std::map<stacks::Trace, stacks::Weight> traces;
  std::vector<PulledProfile> pulled;  // instead of traces
  std::vector<std::shared_ptr<const stacks::Module>>
      modules;  // that no process has mapped any more

  [[nodiscard]] std::uint64_t samples() const;
};

// Finds the service of a process.
class ServiceFinder {
 public:
  // `only`: what is kept (KeeperOrder); empty: all.
  explicit ServiceFinder(const std::vector<std::string>& only);

  // The jobs that run now. Those that were given before are still found, since a minute may have samples of them,
  // until close_minute() has been called twice: kymod says only a moment later that a job has ended.
  void set_jobs(JobSessions jobs);
  void close_minute() { jobs_before_ = std::exchange(jobs_of_minute_, {}); }
  // The cgroups of the containers among `only`, as far as they run.
  void set_containers(const std::vector<std::string>& cgroups);
  // Whether a process is kept because of its cgroups, whatever its service is.
  [[nodiscard]] bool keeps(const stacks::Processes::Process& process) const;
  // The process by which the job of a process is looked up: the process itself, if it is the first one of a job,
  // else the leader of its session.
  [[nodiscard]] pid_t leader_of(pid_t pid, pid_t session) const {
    return job_of(pid) != nullptr ? pid : session;
  }
  // The text of the service of a process whose leader_of() is `leader`. Empty if the service is not kept, unless
  // `chosen`.
  [[nodiscard]] std::string of(const stacks::Trace& trace, pid_t leader, bool chosen = false) const;
  // Finds the services of all stacks of a minute, and leaves those out that are not kept. Threads and processes of
  // one service that have the same stack are then one row. To be called when the jobs of that minute are known.
  void divide(TakenMinute& minute) const;

 private:
  // The name of a job by its first process; nullptr: it is of none.
  [[nodiscard]] const std::string* job_of(pid_t pid) const;

  bool all_;
  std::set<std::string> only_;
  std::vector<CgroupRule> cgroups_;
  std::vector<CgroupRule> containers_;
  JobSessions jobs_;
  JobSessions jobs_of_minute_;  // those that were given before, since the last close_minute()
  JobSessions jobs_before_;     // and in the minute before
};

// Takes the stacks of one type, and counts them by minute.
//
// Threads:   one.
// Ownership: refers to `services`.
// Bounds:    kMaxTraces and kMaxFrames in a minute; the samples of those beyond are counted as
//            lost.
class StackTaker {
 public:
  static constexpr std::size_t kMaxTraces = 100'000;
  // 64 MB. Without this limit, a program could fill the memory by deep stacks.
  static constexpr std::size_t kMaxFrames = 4'000'000;

  // Errors: those of stacks::open_bpf_source().
  static Result<std::unique_ptr<StackTaker>> begin(Type type, unsigned rate,
                                                   const ServiceFinder& services);

  void round() { collection_->round(); }
  [[nodiscard]] int fd() const { return collection_->fd(); }
  // What was taken since the last call, as that of `minute`.
  TakenMinute take(std::int64_t minute);
  // The same for the last time, with what the kernel still has. The frames live as long as this object.
  TakenMinute finish(std::int64_t minute);

 private:
  StackTaker(Type type, unsigned rate, const ServiceFinder& services);
  TakenMinute taken_until_now(std::int64_t minute);
  void put(stacks::Trace trace, const stacks::Sample& sample,
           const stacks::Processes::Process& process);

  Type type_;
  std::uint64_t period_ns_;
  const ServiceFinder& services_;
  std::unique_ptr<stacks::Collection> collection_;
  stacks::Profile last_;  // after finish(): owns the modules of the frames
  TakenMinute now_;
  std::size_t frames_ = 0;         // of its traces
  std::uint64_t begin_ns_;         // of `now_`
  std::uint64_t lost_before_ = 0;  // that the source had counted by then
};

}  // namespace kymo::profiles
