#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/proc/proc_file.h"
#include "base/proc/thread_list.h"
#include "checkpoint/inside/source.h"

namespace kymo::inside {

// What tasks do. The first figures are cumulative, also over tasks that have ended.
struct TaskTotals {
  std::uint64_t cpu_ns = 0;
  std::uint64_t wait_ns = 0;       // ready to run, but without a CPU
  std::uint64_t disk_wait_ns = 0;  // between two reads that both saw the state D
  std::uint64_t throttled_ns = 0;  // the part of disk_wait_ns that balances dirty pages
  std::uint64_t stopped_ns = 0;    // between two reads that both saw the state T
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t timeslices = 0;   // how often it was given a CPU
  std::uint64_t read_calls = 0;   // only of processes
  std::uint64_t write_calls = 0;  // only of processes
  std::uint64_t read_bytes = 0;   // from disks; only of processes
  std::uint64_t written_bytes =
      0;  // to disks, with what waits in the page cache; only of processes
  std::uint64_t resident_bytes = 0;
  std::uint64_t running = 0;  // uses a CPU, or waits for something: not stopped
  std::uint64_t stopped = 0;  // by a signal
  std::uint64_t traced = 0;   // by a tracer, such as CRIU
  std::uint64_t gone = 0;     // seen once, and ended since
};

// The tasks of some processes and of their descendants, read again and again from files of /proc
// that stay open.
//
// Threads: one at a time.
// Cost:    at most kReadsATime tasks are read each time, in turn: about 4 us for a thread and for a
//          process, because the dear files of few tasks are not read each turn (kStatEvery,
//          kIoEvery). A task that is not read keeps its figures. New tasks are searched for in
//          rounds. A round passes over all threads of all processes, kSearchesATime of them each
//          time, about 6 us for each. It begins every 10 ms, less often down to every 40 ms while
//          none comes or goes, and every 50 ms while a tracer has stopped all, but not before the
//          last round has ended. So no reading takes longer if there are many threads.
// Bounds:  kMaxTasks tasks; those beyond are counted by left_out().
class TaskGroup {
 public:
  static constexpr std::size_t kReadsATime = 4;
  static constexpr std::size_t kSearchesATime = 4;
  static constexpr std::size_t kMaxTasks = 256;
  static constexpr std::uint64_t kStatEvery = 2;
  static constexpr std::uint64_t kIoEvery = 4;

  // Whether each thread is a task, or each process with the figures of its first thread. What
  // threads had done before the first look does not count; all else counts from its birth.
  enum class Depth : std::uint8_t { processes, threads };
  // `proc` replaces /proc in tests.
  explicit TaskGroup(Depth depth, std::string proc = "/proc")
      : depth_(depth), proc_(std::move(proc)) {}

  // Is asked about each child that is found. If it returns true, the child and its descendants are
  // left out.
  std::function<bool(pid_t child)> is_other;

  // The process and all descendants that it has from now on.
  void add(pid_t process);
  [[nodiscard]] TaskTotals read(std::uint64_t now_monotonic_ns);
  // Those that the last whole round has found, or the first one so far.
  [[nodiscard]] std::size_t left_out() const { return searched_ ? left_out_ : round_.left_out; }
  // The time of the longest round, also of one that has not ended.
  [[nodiscard]] std::uint64_t longest_round_ns() const { return longest_round_ns_; }
  // The task that slept longest.
  [[nodiscard]] const Sleeper& longest_sleeper() const { return longest_; }

 private:
  struct Task {
    Task(const std::string& path, bool with_io)
        : folder(path), stat(path + "/stat"), schedstat(path + "/schedstat") {
      if (with_io) io = probe::ProcFile(path + "/io");
    }
    std::string folder;
    probe::ProcFile stat;
    probe::ProcFile schedstat;
    probe::ProcFile io;
    pid_t process = 0;
    bool first_thread = false;
    bool existed = false;  // before the group looked for the first time
    char state = '?';
    bool throttled = false;      // it slept so when it was last seen
    std::uint64_t turns = 0;     // how often it was its turn
    std::uint64_t state_ns = 0;  // when its state was read
    probe::ProcFile wchan;       // opened once it sleeps
    TaskTotals before;           // when it was found
    TaskTotals now;
  };

  // The search for new tasks: where it is.
  struct Round {
    bool runs = false;
    std::uint32_t number = 0;
    std::uint64_t began_ns = 0;
    std::size_t process = 0;  // the place in processes_ of the one that is searched
    std::optional<probe::ThreadList> threads;  // of that process
    std::size_t left_out = 0;
    bool all_listed = true;
  };

  void search(std::uint64_t now_monotonic_ns);
  void search_thread();
  void search_children(pid_t process, pid_t thread);
  void end_round(std::uint64_t now_monotonic_ns);
  void plan_round(std::uint64_t now_monotonic_ns);
  void add_task(pid_t process, pid_t task);
  void remove_process(pid_t process);
  void read_next(std::uint64_t now_monotonic_ns);
  bool read_task(pid_t pid, Task& task, std::uint64_t now_monotonic_ns);
  bool read_stat(pid_t pid, Task& task, std::uint64_t now_monotonic_ns);
  void read_schedstat(Task& task);
  void read_io(Task& task);
  void note_sleep(pid_t pid, Task& task, std::uint64_t slept_ns);

  const Depth depth_;
  const std::string proc_;
  std::vector<pid_t> processes_;  // whose children are looked for
  std::set<pid_t> others_;        // children that are left out
  // Those that were read to their end, while their parents list them, with the last round that did.
  std::map<pid_t, std::uint32_t> zombies_;
  std::map<pid_t, Task> tasks_;
  std::vector<pid_t> order_;
  std::size_t cursor_ = 0;
  TaskTotals ended_;
  Sleeper longest_;
  std::size_t left_out_ = 0;
  Round round_;
  std::uint64_t next_round_ns_ = 0;
  std::uint64_t round_every_ns_ = 0;
  std::uint64_t longest_round_ns_ = 0;
  std::uint64_t seen_then_ = 0;  // changes when a task comes or goes; of the last round
  bool searched_ = false;        // a whole round has ended
  bool all_traced_ = false;
  probe::ProcFile::Buffer buffer_{};
};

}  // namespace kymo::inside
