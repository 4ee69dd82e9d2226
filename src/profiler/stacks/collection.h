#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "profiler/stacks/event.h"
#include "profiler/stacks/profile.h"
#include "profiler/stacks/source.h"

namespace kymo::stacks {

// Takes the events of a source, unwinds the stacks of its samples and counts them.
//
// Threads: one.
class Collection {
 public:
  // How often round() is to be called. A file is opened at most this long after it was mapped.
  static constexpr int kRoundMs = 20;
  // What becomes of a stack of `process` that was taken at `time_ns` (CLOCK_MONOTONIC).
  using Put = std::function<void(Trace trace, const Sample& sample,
                                 const Processes::Process& process, std::uint64_t time_ns)>;

  // Without `put`, the stacks are counted in the profile that finish() returns.
  Collection(std::unique_ptr<Source> source, const Sampling& sampling, Put put = {});

  // Takes what has come.
  void round();
  // Stops the source, and takes all that is left.
  Profile finish();
  // See Source.
  [[nodiscard]] int fd() const { return source_->fd(); }
  Result<void> add(const Starter& starter, const std::vector<pid_t>& started) {
    return source_->add(starter, started);
  }
  // Reads the mappings of a process now. A process that it forks has the same ones, until it executes a program.
  void know(pid_t pid) { profile_.processes->add_running(pid); }
  // Leaves out the samples of a process until it executes a program: until then it runs code of this one.
  void skip_until_exec(pid_t pid) { not_executed_ = pid; }
  // It has executed the program by now, even if no event says so.
  void has_executed() { executed_by_ns_ = monotonic_ns(); }
  [[nodiscard]] SourceCounts counts() const { return source_->counts(); }
  // See Processes. Call it now and then if stacks are taken for a long time.
  std::vector<std::shared_ptr<const Module>> take_unused() {
    return profile_.processes->take_unused();
  }

 private:
  void take_until(std::uint64_t horizon_ns);
  void take(const Event& event);
  void count(const Sample& sample, std::uint64_t time_ns);

  std::unique_ptr<Source> source_;
  Put put_;
  std::uint64_t begin_ns_;
  std::uint64_t begin_cpu_ns_;
  pid_t not_executed_ = 0;
  std::uint64_t executed_by_ns_ = UINT64_MAX;
  std::vector<Event> pending_;
  Profile profile_;
};

}  // namespace kymo::stacks
