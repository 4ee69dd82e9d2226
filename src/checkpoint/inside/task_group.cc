#include "checkpoint/inside/task_group.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/proc/process.h"

namespace kymo::inside {
namespace {

using probe::StatFields;

constexpr std::uint64_t kRoundEveryNs = 10'000'000;
constexpr std::uint64_t kRoundAtLeastEveryNs = 40'000'000;
constexpr std::uint64_t kRoundTracedEveryNs = 50'000'000;
constexpr std::uint64_t kStaleNs = 5'000'000;

// The function of the kernel that makes a task wait because too many dirty pages wait to be
// written.
constexpr std::string_view kThrottles = "balance_dirty_pages";

// The functions in which the freezers of cgroups version 1 and 2 keep a task. It is in the state D (or
// S) there, but waits for nothing: it is frozen.
constexpr std::array<std::string_view, 4> kFreezers = {"__refrigerator", "refrigerator",
                                                       "do_freezer_trap", "cgroup_enter_frozen"};
// From Linux 6.1 on, the freezer of version 1 leaves a sleeper where it sleeps (TASK_FREEZABLE) and shows
// it in the state D. In these functions a task always sleeps in the state S, or is stopped (t or T): if it
// is in the state D, it is frozen. Some of them can be frozen only on some kernels.
constexpr std::array<std::string_view, 29> kFreezable = {"hrtimer_nanosleep",
                                                         "do_nanosleep",
                                                         "common_nsleep",
                                                         "futex_wait_queue",
                                                         "futex_wait_queue_me",
                                                         "futex_do_wait",
                                                         "__futex_wait",
                                                         "futex_wait",
                                                         "futex_wait_multiple",
                                                         "do_poll",
                                                         "do_sys_poll",
                                                         "do_select",
                                                         "poll_schedule_timeout",
                                                         "ep_poll",
                                                         "do_epoll_wait",
                                                         "do_wait",
                                                         "pipe_read",
                                                         "anon_pipe_read",
                                                         "sigsuspend",
                                                         "do_sigtimedwait",
                                                         "__do_sys_pause",
                                                         "sk_wait_data",
                                                         "wait_woken",
                                                         "inet_csk_accept",
                                                         "__skb_wait_for_more_packets",
                                                         "unix_stream_data_wait",
                                                         "unix_stream_read_generic",
                                                         "ptrace_stop",
                                                         "do_signal_stop"};

// The compiler may add a suffix to the name of a function, as ".part.0".
template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& functions, std::string_view where) {
  const std::string_view name = where.substr(0, where.find('.'));
  return std::find(functions.begin(), functions.end(), name) != functions.end();
}

// Of a task in the state D.
bool is_frozen(std::string_view where) {
  return is_one_of(kFreezers, where) || is_one_of(kFreezable, where);
}

constexpr std::array kCumulative = {
    &TaskTotals::cpu_ns,       &TaskTotals::wait_ns,       &TaskTotals::disk_wait_ns,
    &TaskTotals::throttled_ns, &TaskTotals::minor_faults,  &TaskTotals::major_faults,
    &TaskTotals::read_bytes,   &TaskTotals::written_bytes, &TaskTotals::timeslices,
    &TaskTotals::read_calls,   &TaskTotals::write_calls,   &TaskTotals::stopped_ns};

std::uint64_t page_bytes() {
  static const auto kBytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return kBytes;
}

// Adds what a task has done since it was found.
void add_grown(const TaskTotals& now, const TaskTotals& before, TaskTotals& sum) {
  for (const auto figure : kCumulative) sum.*figure += now.*figure - before.*figure;
}

// A figure of a task goes back if another of its threads has called execve(2): that thread takes over
// the id, with its own, lower figures. It also does in the moment in which the kernel removes a task.
void raise(std::uint64_t& figure, std::uint64_t value) {
  figure = std::max(figure, value);
}

void count_state(char state, TaskTotals& sum) {
  if (state == 't') {
    ++sum.traced;
  } else if (state == 'T') {
    ++sum.stopped;
  } else {
    ++sum.running;
  }
}

}  // namespace

void TaskGroup::add(pid_t process) {
  if (std::find(processes_.begin(), processes_.end(), process) != processes_.end()) return;
  processes_.push_back(process);
  next_round_ns_ = 0;
}

void TaskGroup::add_task(pid_t process, pid_t task) {
  if (tasks_.contains(task)) return;
  if (tasks_.size() >= kMaxTasks) {
    ++round_.left_out;
    return;
  }
  const bool threads = depth_ == Depth::threads;
  std::string folder = proc_ + "/" + std::to_string(process);
  if (threads) folder += "/task/" + std::to_string(task);
  Task& added = tasks_.try_emplace(task, folder, !threads).first->second;
  added.process = process;
  added.first_thread = process == task;
  added.existed = !searched_ && depth_ == Depth::threads;
  order_.push_back(task);
}

void TaskGroup::remove_process(pid_t process) {
  const auto found = std::find(processes_.begin(), processes_.end(), process);
  if (found == processes_.end()) return;
  const auto place = static_cast<std::size_t>(found - processes_.begin());
  processes_.erase(found);
  if (place == round_.process) round_.threads.reset();
  if (place < round_.process) --round_.process;
}

void TaskGroup::search_children(pid_t process, pid_t thread) {
  const Result<std::vector<pid_t>> children = probe::children_of_thread(process, thread, proc_);
  round_.all_listed = round_.all_listed && children.ok();
  if (!children) return;  // found in the next round
  for (const pid_t child : *children) {
    if (const auto zombie = zombies_.find(child); zombie != zombies_.end()) {
      zombie->second = round_.number;
      continue;
    }
    const bool known = std::find(processes_.begin(), processes_.end(), child) != processes_.end();
    if (known || processes_.size() >= kMaxTasks || others_.contains(child)) continue;
    if (is_other && is_other(child)) {
      others_.insert(child);
    } else {
      processes_.push_back(child);  // to be searched in this round, too
    }
  }
}

void TaskGroup::search_thread() {
  const pid_t process = processes_[round_.process];
  if (!round_.threads) {
    round_.threads.emplace(process, proc_);
    if (depth_ == Depth::processes) add_task(process, process);
  }
  const pid_t thread = round_.threads->next();
  if (thread != 0) {
    if (depth_ == Depth::threads) add_task(process, thread);
    search_children(process, thread);
    return;
  }
  round_.all_listed = round_.all_listed && round_.threads->error() == 0;
  round_.threads.reset();
  ++round_.process;
}

void TaskGroup::end_round(std::uint64_t now_monotonic_ns) {
  if (round_.all_listed) {
    std::erase_if(zombies_, [this](const auto& zombie) { return zombie.second != round_.number; });
  }
  left_out_ = round_.left_out;
  plan_round(now_monotonic_ns);
  searched_ = true;
  round_.runs = false;
}

// Goes on with the search, or begins a round of it if one is due.
void TaskGroup::search(std::uint64_t now_monotonic_ns) {
  if (!round_.runs) {
    if (now_monotonic_ns < next_round_ns_) return;
    round_ = Round{true, round_.number + 1, now_monotonic_ns, 0, {}, 0, true};
  }
  for (std::size_t i = 0; i < kSearchesATime && round_.process < processes_.size();) {
    const bool begins = !round_.threads;
    search_thread();
    if (begins || round_.threads) ++i;  // the end of a list costs little
  }
  longest_round_ns_ = std::max(longest_round_ns_, now_monotonic_ns - round_.began_ns);
  if (round_.process >= processes_.size()) end_round(now_monotonic_ns);
}

void TaskGroup::read_schedstat(Task& task) {
  std::string_view times = task.schedstat.read(buffer_);
  if (times.empty()) return;
  raise(task.now.cpu_ns, probe::take_number(times));
  raise(task.now.wait_ns, probe::take_number(times));
  raise(task.now.timeslices, probe::take_number(times));
}

void TaskGroup::read_io(Task& task) {
  if (!task.io.valid()) return;
  const std::string_view io = task.io.read(buffer_);
  if (io.empty()) return;
  raise(task.now.read_calls, probe::value_of(io, "syscr"));
  raise(task.now.write_calls, probe::value_of(io, "syscw"));
  raise(task.now.read_bytes, probe::value_of(io, "read_bytes"));
  raise(task.now.written_bytes, probe::value_of(io, "write_bytes"));
}

// Called when a task is seen in the state D. `slept_ns`: since it was last seen so.
void TaskGroup::note_sleep(pid_t pid, Task& task, std::uint64_t slept_ns) {
  if (!task.wchan.valid()) task.wchan = probe::ProcFile(task.folder + "/wchan");
  const std::string_view where = task.wchan.read(buffer_);
  if (is_frozen(where)) {
    task.throttled = false;
    return;
  }
  const bool throttled = where == kThrottles;
  task.now.disk_wait_ns += slept_ns;
  if (throttled && task.throttled) task.now.throttled_ns += slept_ns;
  task.throttled = throttled;
  const std::uint64_t all_ns = task.now.disk_wait_ns - task.before.disk_wait_ns;
  if (all_ns <= longest_.slept_ns) return;
  longest_ = {pid, all_ns, where == "0" ? std::string() : std::string(where)};
}

// Returns false if the task is gone.
bool TaskGroup::read_stat(pid_t pid, Task& task, std::uint64_t now_monotonic_ns) {
  StatFields stat;
  if (!stat.parse(task.stat.read(buffer_))) return false;
  const char state = stat.state_letter();
  raise(task.now.minor_faults, stat[StatFields::minor_faults]);
  raise(task.now.major_faults, stat[StatFields::major_faults]);
  if (task.first_thread) task.now.resident_bytes = stat[StatFields::resident_pages] * page_bytes();
  if (state == 'D') note_sleep(pid, task, task.state == 'D' ? now_monotonic_ns - task.state_ns : 0);
  if (state == 'T' && task.state == 'T') task.now.stopped_ns += now_monotonic_ns - task.state_ns;
  task.state = state;
  task.state_ns = now_monotonic_ns;
  return true;
}

// Returns false if the task is gone. A zombie still has its last figures.
bool TaskGroup::read_task(pid_t pid, Task& task, std::uint64_t now_monotonic_ns) {
  // If there are many tasks, or if this program had no CPU, it is long since the last turn.
  const bool late = order_.size() > kReadsATime || now_monotonic_ns - task.state_ns > kStaleNs;
  const bool look = late || task.turns % kStatEvery == 0;
  if (look && !read_stat(pid, task, now_monotonic_ns)) return false;
  const bool ended = task.state == 'Z' || task.state == 'X';
  // What a tracer or a signal has stopped mostly stays so until the next look.
  const bool stopped = task.state == 't' || task.state == 'T';
  if (look || !stopped) read_schedstat(task);
  if (late || task.turns % kIoEvery == 0 || ended) read_io(task);
  if (task.turns == 0 && task.existed) task.before = task.now;
  ++task.turns;
  return !ended;
}

void TaskGroup::read_next(std::uint64_t now_monotonic_ns) {
  const std::size_t count = std::min(kReadsATime, order_.size());
  for (std::size_t i = 0; i < count && !order_.empty(); ++i) {
    if (cursor_ >= order_.size()) cursor_ = 0;
    const auto found = tasks_.find(order_[cursor_]);
    if (read_task(found->first, found->second, now_monotonic_ns)) {
      ++cursor_;
      continue;
    }
    add_grown(found->second.now, found->second.before, ended_);
    ++ended_.gone;
    zombies_.insert_or_assign(found->first, round_.number);
    remove_process(found->first);
    tasks_.erase(found);
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(cursor_));
  }
}

// To search for tasks costs several times as much as to read them. Where none came or went since the
// last round, it is done half as often.
void TaskGroup::plan_round(std::uint64_t now_monotonic_ns) {
  const std::uint64_t seen = tasks_.size() + processes_.size() + 3 * ended_.gone;
  const bool quiet = searched_ && seen == seen_then_;
  seen_then_ = seen;
  round_every_ns_ = quiet ? std::min(2 * round_every_ns_, kRoundAtLeastEveryNs) : kRoundEveryNs;
  // Where all stand still, nothing new begins until they run again.
  const std::uint64_t every_ns = all_traced_ ? kRoundTracedEveryNs : round_every_ns_;
  next_round_ns_ = std::max(now_monotonic_ns, round_.began_ns + every_ns);
}

TaskTotals TaskGroup::read(std::uint64_t now_monotonic_ns) {
  search(now_monotonic_ns);
  read_next(now_monotonic_ns);
  TaskTotals sum = ended_;
  for (const auto& [pid, task] : tasks_) {
    if (task.turns == 0) continue;  // its turn has not come yet
    add_grown(task.now, task.before, sum);
    sum.resident_bytes += task.now.resident_bytes;
    count_state(task.state, sum);
  }
  all_traced_ = sum.traced != 0 && sum.traced == tasks_.size();
  return sum;
}

}  // namespace kymo::inside
