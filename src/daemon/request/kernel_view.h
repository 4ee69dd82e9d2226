#pragma once

#include <future>
#include <memory>

#include "inside/bpf_counts.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The BPF program that looks inside requests. Loading takes a while, so it is loaded beside all else
// when kymod starts.
//
// Threads: start() before any other; get() from any thread.
class KernelView {
 public:
  using Counts = Result<std::shared_ptr<inside::BpfCounts>>;

  // `pages`: also what the kernel gives out. Does not wait. Logs why it cannot be loaded.
  void start(bool pages);
  // Waits until it is loaded.
  // Errors: those of BpfCounts::load(); failed_precondition: it was not started.
  [[nodiscard]] Counts get() const;

 private:
  std::shared_future<Counts> loaded_;
};

}  // namespace kymo::daemon
