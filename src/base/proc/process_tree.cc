#include "base/proc/process_tree.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/proc/proc_file.h"
#include "base/proc/process.h"

namespace kymo::probe {
namespace {

constexpr std::uint64_t kMicrosPerSecond = 1'000'000;
// The context switches of a thread at the last reading.
struct Thread {
  explicit Thread(const std::string& path) : status(path + "/status") {}
  ProcFile status;
  std::uint64_t voluntary = 0;
  std::uint64_t involuntary = 0;
};

struct Member {
  Member(const std::string& path, bool has_clock, pid_t pid)
      : stat(path + "/stat"), io(path + "/io") {
    if (has_clock) {
      clock_known = ::clock_getcpuclockid(pid, &clock) == 0;
    }
  }
  ProcFile stat;
  ProcFile io;
  clockid_t clock{};
  bool clock_known = false;
  std::map<pid_t, Thread> threads;
  std::uint64_t ended_voluntary = 0;  // switches of threads that have ended
  std::uint64_t ended_involuntary = 0;
  bool has_parent = false;  // its parent is in the tree and gets its figures at its end
  TreeTotals last;          // its share of the totals at the last reading
};

constexpr std::array kCumulative = {&TreeTotals::cpu_ns,
                                    &TreeTotals::user_us,
                                    &TreeTotals::system_us,
                                    &TreeTotals::read_bytes,
                                    &TreeTotals::written_bytes,
                                    &TreeTotals::disk_read_bytes,
                                    &TreeTotals::disk_written_bytes,
                                    &TreeTotals::minor_faults,
                                    &TreeTotals::major_faults,
                                    &TreeTotals::voluntary_switches,
                                    &TreeTotals::involuntary_switches};

void add_all(const TreeTotals& more, TreeTotals& sum) {
  for (const auto figure : kCumulative) {
    sum.*figure += more.*figure;
  }
  for (const auto figure : {&TreeTotals::resident_bytes, &TreeTotals::processes,
                            &TreeTotals::threads, &TreeTotals::stopped}) {
    sum.*figure += more.*figure;
  }
}

}  // namespace

struct ProcessTree::State {
  std::string proc;
  pid_t adopter = 0;
  std::uint64_t tick_us = 0;  // the length of a clock tick of /proc/PID/stat in microseconds
  std::uint64_t page_bytes = 0;
  std::map<pid_t, Member> members;
  std::vector<pid_t> order;  // parents before children
  TreeTotals ended;          // cumulative shares of ended processes that no member's figures have
  std::uint64_t next_discovery_ns = 0;
  TreeTotals given;
  ProcFile::Buffer buffer{};

  void discover();
  void discover_threads(pid_t pid, Member& member);
  bool read(Member& member);
  void add_cpu(const Member& member, const StatFields& stat, TreeTotals& sum) const;
  void add_io(const Member& member, TreeTotals& sum);
  void add_switches(Member& member, TreeTotals& sum);
  void forget(pid_t pid);
};

void ProcessTree::State::discover() {
  // Search from each member, not only from the root: a child stays after the end of its parent.
  const auto add_children = [this](pid_t parent) {
    const Result<std::vector<pid_t>> children = children_of(parent, proc);
    if (!children) return;  // found at the next look
    for (const pid_t child : *children) {
      if (members.try_emplace(child, proc + "/" + std::to_string(child), proc == "/proc", child)
              .second) {
        order.push_back(child);
      }
    }
  };
  if (adopter != 0) {
    add_children(adopter);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {  // NOLINT(modernize-loop-convert): it grows
    add_children(order[i]);
  }
  for (auto& [pid, member] : members) {
    discover_threads(pid, member);
  }
}

void ProcessTree::State::discover_threads(pid_t pid, Member& member) {
  for (const pid_t thread : threads_of(pid, proc)) {
    member.threads.try_emplace(
        thread, proc + "/" + std::to_string(pid) + "/task/" + std::to_string(thread));
  }
}

void ProcessTree::State::add_cpu(const Member& member, const StatFields& stat,
                                 TreeTotals& sum) const {
  const std::uint64_t waited = stat[StatFields::waited_user] + stat[StatFields::waited_system];
  const std::uint64_t own = stat[StatFields::user] + stat[StatFields::system];
  timespec exact{};
  sum.cpu_ns += waited * tick_us * 1000;
  sum.cpu_ns += member.clock_known && ::clock_gettime(member.clock, &exact) == 0
                    ? to_nanos(exact)
                    : own * tick_us * 1000;
  sum.user_us += (stat[StatFields::user] + stat[StatFields::waited_user]) * tick_us;
  sum.system_us += (stat[StatFields::system] + stat[StatFields::waited_system]) * tick_us;
}

void ProcessTree::State::add_io(const Member& member, TreeTotals& sum) {
  const std::string_view io = member.io.read(buffer);
  sum.read_bytes += value_of(io, "rchar");
  sum.written_bytes += value_of(io, "wchar");
  sum.disk_read_bytes += value_of(io, "read_bytes");
  sum.disk_written_bytes += value_of(io, "write_bytes");
}

void ProcessTree::State::add_switches(Member& member, TreeTotals& sum) {
  for (auto at = member.threads.begin(); at != member.threads.end();) {
    Thread& thread = at->second;
    const std::string_view status = thread.status.read(buffer);
    if (status.empty()) {
      member.ended_voluntary += thread.voluntary;
      member.ended_involuntary += thread.involuntary;
      at = member.threads.erase(at);
      continue;
    }
    thread.voluntary = value_of(status, "voluntary_ctxt_switches");
    thread.involuntary = value_of(status, "nonvoluntary_ctxt_switches");
    sum.voluntary_switches += thread.voluntary;
    sum.involuntary_switches += thread.involuntary;
    ++at;
  }
  sum.voluntary_switches += member.ended_voluntary;
  sum.involuntary_switches += member.ended_involuntary;
}

// Returns false if the process is gone.
bool ProcessTree::State::read(Member& member) {
  StatFields stat;
  if (!stat.parse(member.stat.read(buffer))) {
    return false;
  }
  TreeTotals sum;
  member.has_parent = members.contains(static_cast<pid_t>(stat[StatFields::parent]));
  add_cpu(member, stat, sum);
  sum.minor_faults += stat[StatFields::minor_faults] + stat[StatFields::waited_minor_faults];
  sum.major_faults += stat[StatFields::major_faults] + stat[StatFields::waited_major_faults];
  sum.resident_bytes += stat[StatFields::resident_pages] * page_bytes;
  // A program whose first thread has ended also has the state Z while its other threads run.
  const bool zombie =
      (stat.state_letter() == 'Z' || stat.state_letter() == 'X') && stat[StatFields::threads] <= 1;
  sum.processes += zombie ? 0 : 1;
  sum.threads += zombie ? 0 : stat[StatFields::threads];
  sum.stopped += stat.state_letter() == 'T' || stat.state_letter() == 't' ? 1U : 0U;
  add_io(member, sum);  // after the use of `stat`: this overwrites the buffer in which it lies
  add_switches(member, sum);
  member.last = sum;
  return true;
}

// Removes a process that is gone. If its parent is in the tree, the kernel adds its figures to
// those of the parent. If not (the root, and processes whose parent has ended), `ended` keeps the
// last figures. `ended` always keeps the context switches, because the kernel does not add those.
void ProcessTree::State::forget(pid_t pid) {
  const auto found = members.find(pid);
  const Member& member = found->second;
  if (!member.has_parent) {
    add_all(member.last, ended);
  } else {
    ended.voluntary_switches += member.last.voluntary_switches;
    ended.involuntary_switches += member.last.involuntary_switches;
  }
  ended.resident_bytes = ended.processes = ended.threads = ended.stopped = 0;
  members.erase(found);
}

ProcessTree::ProcessTree(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProcessTree::ProcessTree(ProcessTree&&) noexcept = default;
ProcessTree& ProcessTree::operator=(ProcessTree&&) noexcept = default;
ProcessTree::~ProcessTree() = default;

Result<ProcessTree> ProcessTree::open(pid_t root, pid_t adopter, std::string proc) {
  const Result<Process> process = read_process(root, proc);
  if (!process) {
    return process.error();
  }
  auto state = std::make_unique<State>();
  state->proc = std::move(proc);
  state->adopter = adopter;
  state->tick_us = kMicrosPerSecond / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  state->page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string path = state->proc + "/" + std::to_string(root);
  const auto member = state->members.try_emplace(root, path, state->proc == "/proc", root).first;
  if (!member->second.stat.valid() || !member->second.io.valid()) {
    return system_error("cannot read what the kernel knows of process " + std::to_string(root) +
                            " from " + path + "/io; run as its user or as root",
                        errno);
  }
  state->order.push_back(root);
  return ProcessTree(std::move(state));
}

bool ProcessTree::read(std::uint64_t now_monotonic_ns, TreeTotals* totals) {
  State& s = *state_;
  if (now_monotonic_ns >= s.next_discovery_ns) {
    s.discover();
    s.next_discovery_ns = now_monotonic_ns + kDiscoverNs;
  }
  TreeTotals sum;
  std::erase_if(s.order, [&](pid_t pid) {
    Member& member = s.members.at(pid);
    if (s.read(member)) {
      add_all(member.last, sum);
      return false;
    }
    s.forget(pid);
    return true;
  });
  add_all(s.ended, sum);
  for (const auto figure : kCumulative) {
    sum.*figure = std::max(sum.*figure, s.given.*figure);
  }
  s.given = sum;
  *totals = sum;
  return sum.processes > 0;
}

}  // namespace kymo::probe
