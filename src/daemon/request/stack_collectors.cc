#include "daemon/request/stack_collectors.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/clock.h"
#include "base/helper_process.h"
#include "base/human.h"
#include "base/line_reader.h"
#include "base/proc/process.h"

namespace kymo::daemon {
namespace {

using std::chrono::milliseconds;

// A collector is mostly ready within 0.1 s. A dump does not wait longer than this for it.
constexpr milliseconds kReadyWithin{3000};
// How long a collector may take to name and write what it has taken.
constexpr std::chrono::minutes kWrittenWithin{5};
constexpr milliseconds kWaitAtEnd{10000};

// Waits until there is something to read, or the time is over. Returns false if it is over.
bool wait_for(int fd, std::uint64_t until_ns) {
  for (;;) {
    const std::uint64_t now_ns = monotonic_ns();
    const std::uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    pollfd ready{fd, POLLIN, 0};
    const int got = ::poll(&ready, 1, static_cast<int>(left_ns / 1'000'000));
    if (got > 0) return true;
    if (left_ns < 1'000'000 && (got == 0 || errno != EINTR)) return false;
  }
}

std::uint64_t after(std::chrono::nanoseconds time) {
  return monotonic_ns() + to_nanos(time);
}

}  // namespace

struct StackCollectors::Collector {
  HelperProcess process;
  std::string output;
  std::mutex mutex;            // guards the members below
  LineReader said{-1};         // the answers of the collector
  bool told = false;           // that it failed was reported
  std::uint64_t ended_ns = 0;  // when it was told to write; 0: not yet

  void report(const std::string& line);
};

// Logs the last line of the collector, which says what became of its profile.
void StackCollectors::Collector::report(const std::string& line) {
  constexpr std::string_view kWritten = stacks::kWritten;
  if (line.starts_with(stacks::kFailed)) {
    const std::string why = line.substr(std::string_view(stacks::kFailed).size());
    return spdlog::warn("the stack profile {} was not written: {}", output, why);
  }
  if (!line.starts_with(kWritten)) {
    return spdlog::warn("the stack profile {} was not written: its collector ended", output);
  }
  const std::string counts = line.substr(kWritten.size());
  const std::size_t space = std::min(counts.find(' '), counts.size());
  std::uint64_t lost = 0;
  std::from_chars(counts.data() + std::min(space + 1, counts.size()), counts.data() + counts.size(),
                  lost);
  spdlog::info("{} samples in {}", counts.substr(0, space), output);
  if (lost != 0) spdlog::warn("{} samples were lost and are missing from {}", lost, output);
}

StackCollectors::Running::~Running() {
  if (collector_ == nullptr) return;
  const std::lock_guard lock(collector_->mutex);
  if (collector_->ended_ns != 0) return;
  collector_->told = true;
  collector_->process.orders.reset();
}

Result<void> StackCollectors::Running::wait_until_ready() {
  const std::uint64_t until_ns = after(kReadyWithin);
  const std::lock_guard lock(collector_->mutex);
  std::string line;
  bool in_time = true;
  bool open = true;
  while (line.empty() && in_time && open) {
    in_time = wait_for(collector_->process.answers.get(), until_ns);
    open = !in_time || collector_->said.read();
    line = collector_->said.take().value_or("");
  }
  if (line == stacks::kReady) return {};
  collector_->told = true;
  collector_->process.orders.reset();
  if (line.starts_with(stacks::kFailed)) {
    return Error{Code::failed_precondition, line.substr(std::string_view(stacks::kFailed).size())};
  }
  return Error{Code::unavailable, open ? "the process that takes stacks was not ready within " +
                                             human::duration(kReadyWithin)
                                       : "the process that takes stacks ended"};
}

void StackCollectors::Running::end(const std::vector<stacks::PhaseTimes>& phases) {
  const std::lock_guard lock(collector_->mutex);
  if (collector_->told) return;
  std::size_t written = 0;
  static_cast<void>(
      write_all(collector_->process.orders.get(), stacks::phases_text(phases), &written));
  collector_->process.orders.reset();
  collector_->ended_ns = monotonic_ns();
}

Result<StackCollectors::Running> StackCollectors::start(const stacks::CollectorOrder& order) {
  Result<HelperProcess> process =
      start_helper(stacks::kCollectorArgument, stacks::order_text(order));
  if (!process) return process.error();
  auto collector = std::make_shared<Collector>();
  collector->process = *std::move(process);
  collector->said = LineReader(collector->process.answers.get());
  collector->output = order.output;
  const std::lock_guard lock(mutex_);
  collectors_.push_back(collector);
  return Running(std::move(collector));
}

// Returns whether it has ended.
bool StackCollectors::reap(Collector& collector) {
  // A request may be waiting for it. It is looked at again.
  const std::unique_lock lock(collector.mutex, std::try_to_lock);
  if (!lock) return false;
  int status = 0;
  const pid_t got = ::waitpid(collector.process.pid, &status, WNOHANG);
  if (got == 0) {
    const bool late =
        collector.ended_ns != 0 && monotonic_ns() - collector.ended_ns > to_nanos(kWrittenWithin);
    if (late || collector.told) ::kill(collector.process.pid, SIGKILL);
    return false;
  }
  while (collector.said.read()) {
  }
  if (!collector.told) collector.report(collector.said.take().value_or(""));
  return true;
}

void StackCollectors::look() {
  std::list<std::shared_ptr<Collector>> all;
  {
    const std::lock_guard lock(mutex_);
    all = collectors_;
  }
  std::erase_if(all, [this](const auto& one) { return !reap(*one); });
  const std::lock_guard lock(mutex_);
  for (const auto& ended : all) collectors_.remove(ended);
}

Result<void> StackCollectors::check(unsigned rate) {
  stacks::CollectorOrder order;
  order.rate = rate;
  Result<Running> running = start(order);
  return running ? running->wait_until_ready() : running.error();
}

StackCollectors::~StackCollectors() {
  const std::uint64_t until_ns = after(kWaitAtEnd);
  for (const auto& collector : collectors_) {
    const FileDescriptor process(probe::open_process(collector->process.pid));
    if (process.valid()) static_cast<void>(wait_for(process.get(), until_ns));
    static_cast<void>(reap(*collector));
  }
}

}  // namespace kymo::daemon
