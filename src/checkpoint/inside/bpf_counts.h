#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "checkpoint/inside/bpf_wire.h"
#include "kymo/result.h"

namespace kymo::inside {

// What the threads of one role have done since the view began, with what is not over yet. All times
// are nanoseconds.
struct ThreadCounts {
  std::uint64_t run_ns = 0;
  std::uint64_t runnable_ns = 0;  // able to run, and without a CPU
  std::uint64_t switches = 0;     // how often they were given a CPU
  std::array<std::uint64_t, KYMO_OFFS> off_ns{};
  std::uint64_t longest_disk_ns = 0;  // off_ns[KYMO_OFF_DISK] of the thread with the most
  std::array<std::uint64_t, KYMO_CALLS> calls{};
  std::array<std::uint64_t, KYMO_CALLS> call_ns{};
  std::array<std::uint64_t, KYMO_CALLS> call_bytes{};
  std::uint64_t allocated_bytes = 0;
  std::uint64_t user_faults = 0;
};

// The BPF program of inside.bpf.c. It is loaded once, and attached only while there is a view: it
// costs every program of the machine some time at each system call.
//
// Threads:   any.
// Ownership: views share it.
class BpfCounts : public std::enable_shared_from_this<BpfCounts> {
 private:
  struct Loaded;

 public:
  // Looks at the processes of one request.
  //
  // Threads: one at a time.
  class View {
   public:
    View(std::shared_ptr<BpfCounts> counts, std::size_t index);
    // Looks at nothing any more. The last view has the program detached, soon and in the background.
    ~View();
    View(const View&) = delete;
    View& operator=(const View&) = delete;

    // From now on, what this thread of this program starts is CRIU or the container runtime, with all
    // descendants.
    void follow(pid_t thread);
    // Looks at the threads that these processes have now, and at what those start. Processes that are
    // looked at already stay what they are.
    void look_at(const std::vector<pid_t>& processes, kymo_role role);
    // CRIU will make processes with these pids. They are the target.
    void expect(const std::vector<pid_t>& processes);
    [[nodiscard]] ThreadCounts read(kymo_role role);
    // How many threads have no counts, because there were too many.
    [[nodiscard]] std::size_t left_out() const;

   private:
    const std::shared_ptr<BpfCounts> counts_;
    const std::size_t index_;
    std::vector<pid_t> expected_;
    pid_t followed_ = 0;
    std::vector<kymo_thread> threads_;  // as copied last
  };

  // Loads the program, which takes 30 to 60 ms. `pages`: also what is allocated, and page faults.
  // Errors: permission_denied: CAP_BPF and CAP_PERFMON are missing; failed_precondition: this is a
  //         container, where pids are others; those of the kernel. The message says what to do.
  static Result<std::shared_ptr<BpfCounts>> load(bool pages);
  explicit BpfCounts(std::unique_ptr<Loaded> loaded, bool pages);
  ~BpfCounts();
  BpfCounts(const BpfCounts&) = delete;
  BpfCounts& operator=(const BpfCounts&) = delete;

  // `container`: a container runtime starts CRIU. `restores`: CRIU makes the target.
  // Errors: resource_exhausted: there are KYMO_VIEWS views; those of attaching.
  Result<std::unique_ptr<View>> begin(bool container, bool restores);
  [[nodiscard]] bool pages() const { return pages_; }

 private:
  Result<void> attach();

  std::unique_ptr<Loaded> loaded_;
  const bool pages_;
};

}  // namespace kymo::inside
