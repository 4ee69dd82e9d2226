#pragma once

#include <future>
#include <memory>

#include "checkpoint/inside/bpf_counts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The BPF program that looks inside requests. Loading takes a while, so a thread loads it while
// kymod starts.
//
// Threads: start() before any other; get() from any thread.
class KernelView {
 public:
  using Counts = Result<std::shared_ptr<inside::BpfCounts>>;

  // Starts to load it, and does not wait. `pages`: it also counts the memory that the kernel gives
  // to processes. Logs why it cannot be loaded.
  void start(bool pages);
  // Waits until it is loaded.
  // Errors: those of BpfCounts::load(); failed_precondition: it was not started.
  [[nodiscard]] Counts get() const;

 private:
  std::shared_future<Counts> loaded_;
};

}  // namespace kymo::daemon
