#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/stacks/address_space.h"
#include "profiler/stacks/elf_reader.h"
#include "profiler/stacks/event.h"
#include "profiler/stacks/module.h"

namespace kymo::stacks {

// The processes that samples come from, and their modules. A module's file is opened when the
// process maps it, so that it can be read after the process has ended or the file was deleted.
//
// Threads:   the only one of the process when it is made, because it starts a process; then one.
// Ownership: owns all modules. They live as long as this object.
// Bounds:    of processes that have ended, the newest kEndedKept, with at most kEndedMappings mappings together.
//            The frames of a sample that comes later are in no module.
class Processes {
 public:
  static constexpr std::size_t kEndedKept = 1024;
  static constexpr std::size_t kEndedMappings =
      200'000;  // about 20 MB; 1024 programs have a quarter

  struct Process {
    AddressSpace memory;
    std::string container;  // the first 12 digits of its id; empty if it is in none
    std::string cgroups;    // its /proc/PID/cgroup
    pid_t session = 0;      // 0: not known
    bool ended = false;
    std::uint64_t read_ns = 0;  // when its mappings were last read; 0: not yet
    std::uint64_t rest_ns = 0;  // and how long they are not read again
  };

  Processes();

  // Reads what a running process has mapped. Nothing is known of a process that is gone.
  void add_running(pid_t pid);
  void mapped(const Mapped& mapped);
  void forked(const Forked& forked);
  void executed(const Executed& executed);
  void exited(const Exited& exited);
  void named(const Named& named);
  // The process; it is read now if it is not known.
  Process& at(pid_t pid);
  // Reads again what a process has mapped, because an address was in no mapping: the kernel does
  // not tell what was moved (mremap(2)), as CRIU does it. Returns false if the process is gone, or
  // was read a short time ago: 20 ms, or 20 times as long as that reading took, if that is longer.
  bool read_again(pid_t pid);
  // A compiler in a process may write /tmp/perf-PID.map with the names of what it has compiled.
  // Opens it, if it is there by now. To be called when a frame of such code was seen.
  void find_perf_map(pid_t pid);

  // Returns, and no longer owns, the modules that no process has mapped any more. Frames that were
  // found until now may refer to them. Also forgets the names of threads, which are read again, and finds the
  // processes whose end the kernel could not report, because its buffer was full.
  std::vector<std::shared_ptr<const Module>> take_unused();

  // The name of a thread, or of a process by that of its first thread; empty if it is not known.
  std::string name_of(pid_t tid);

  // CPU time of the process that reads the modules.
  [[nodiscard]] std::uint64_t reader_cpu_ns() const { return reader_->cpu_ns(); }

  [[nodiscard]] const Module* kernel() const { return &kernel_; }

  struct Kept {
    std::size_t processes = 0;
    std::size_t mappings = 0;  // those that processes share count once
  };
  // What is in memory now.
  [[nodiscard]] Kept kept() const;

 private:
  std::shared_ptr<Module> module_of(const Mapped& mapped);
  std::shared_ptr<Module> jit_of(pid_t pid);
  bool read_maps(pid_t pid);
  void forget_ended(pid_t pid);

  std::unordered_map<pid_t, Process> processes_;
  std::deque<std::pair<pid_t, std::size_t>>
      ended_;                       // with the number of mappings, the oldest first
  std::size_t ended_mappings_ = 0;  // of all in `ended_`
  std::map<std::tuple<std::uint64_t, std::uint64_t>, std::shared_ptr<Module>> files_;
  std::unordered_map<pid_t, std::shared_ptr<Module>> jits_;
  std::unordered_map<pid_t, std::string> names_;   // of threads that were asked for or renamed
  std::vector<std::shared_ptr<Module>> old_jits_;  // of processes that are forgotten
  std::shared_ptr<ElfReader> reader_;
  std::shared_ptr<Module> vdso_;
  Module kernel_;
};

}  // namespace kymo::stacks
