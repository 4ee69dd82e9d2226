#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/diagnosis/verdict.h"
#include "checkpoint/inside/bpf_source.h"
#include "checkpoint/inside/sampler.h"
#include "checkpoint/inside/sources.h"
#include "checkpoint/inside/subjects.h"
#include "checkpoint/inside/timeline.h"
#include "daemon/request/kernel_view.h"
#include "recorder/sampling/history/own_columns.h"

namespace kymo::daemon {

// What is seen of CRIU, the target and the machine while a request runs, as columns of the recording
// of the request.
//
// Threads:   the thread that runs the request. From start() to the end it listens to the programs
//            that this thread starts.
// Ownership: shares the columns.
class InsideView {
 public:
  InsideView() = default;
  ~InsideView() { stop(); }
  InsideView(const InsideView&) = delete;
  InsideView& operator=(const InsideView&) = delete;

  // Adds the columns. To be called before the recording begins. `restored`: the pids that a restore
  // will make, if they are known.
  void add_columns(const inside::Observed& target, const KernelView::Counts& kernel,
                   const std::vector<pid_t>& restored, std::shared_ptr<OwnColumns> columns);
  // Starts to read, each `interval`. Does nothing without add_columns().
  void start(std::chrono::nanoseconds interval);
  // From now on, what this thread starts is CRIU, or the runtime that starts CRIU.
  void runtime_called();
  // Reads a last time, and stops. Does nothing if it does not run.
  void stop();
  // Adds what was seen to the facts of a request that began at `began_ns` on CLOCK_MONOTONIC: what
  // falls into the window that is explained. The facts must have their phases. Call it after
  // stop().
  void add_signals(std::uint64_t began_ns, diagnosis::Facts& facts) const;
  // Stops. Returns, for the metadata of the recording, what could not be read and what reading has
  // cost. Nothing if it was not started.
  std::optional<nlohmann::json> end();

 private:
  [[nodiscard]] std::optional<std::uint64_t> grown(std::string_view column, std::uint64_t from_ns,
                                                   std::uint64_t to_ns) const;

  std::shared_ptr<inside::Subjects> subjects_;
  std::shared_ptr<OwnColumns> columns_;
  std::size_t first_ = 0;
  inside::BpfSource* bpf_ = nullptr;  // one of the sampler's sources, if it can be read
  std::string no_bpf_;                // why, if it cannot
  std::optional<inside::Sampler> sampler_;
  std::optional<inside::Timeline> timeline_;  // of all columns
  bool runs_ = false;
};

}  // namespace kymo::daemon
