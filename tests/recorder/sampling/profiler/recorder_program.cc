// A small program that records itself, for tests that kill, freeze, starve or restore it.
//
//   kymo-test-recorder FILE.tsv [RING]
//
// Records at 1 kHz into a ring of 8 x 50 rows, while a thread counts, until SIGTERM or for KYMO_RUN_MS
// milliseconds. Then it prints one line of JSON: the counts of the recorder, and the longest time that
// a single add took. SIGUSR1 makes it fork a child that stops its copy of the profiler and exits.

#include <kymo/profiler.h>
#include <kymo/registry.h>
#include <kymo/sink.h>
#include <kymo/trouble.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/clock.h"

namespace {

std::atomic<bool> g_stop{false};

// Counts as fast as it can, with short pauses, like a program with counters.
std::uint64_t count_until_stopped(kymo::Counter steps) {
  std::uint64_t longest_ns = 0;
  while (!g_stop.load(std::memory_order_relaxed)) {
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t begin = kymo::monotonic_ns();
      steps.add();
      const std::uint64_t took = kymo::monotonic_ns() - begin;
      longest_ns = took > longest_ns ? took : longest_ns;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return longest_ns;
}

// In the child, the profiler must be off and say so, counters must work, and stopping the profiler must
// have no effect on the parent.
int be_a_child(kymo::Profiler& profiler, kymo::Counter steps) {
  steps.add();
  const bool off = !profiler.running() && !profiler.stop().ok();
  return off ? 0 : 1;
}

int record(kymo::Profiler& profiler, kymo::Counter steps, const timespec& look_every) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);
  const char* run_ms = std::getenv("KYMO_RUN_MS");
  const std::uint64_t begin_ns = kymo::monotonic_ns();
  kymo::TroubleWatch watch(profiler);
  for (int got = 0; got != SIGTERM;) {
    got = sigtimedwait(&signals, nullptr, &look_every);
    for (const kymo::Trouble& trouble : watch.look()) {
      std::fprintf(stderr, "%s: %s\n", trouble.over ? "over" : "begun", trouble.text.c_str());
    }
    if (got == SIGUSR1) {
      const pid_t child = fork();
      if (child == 0) {
        const int status = be_a_child(profiler, steps);
        profiler.~Profiler();  // must not hang, and must not close what belongs to the parent
        _exit(status);
      }
      int status = -1;
      waitpid(child, &status, 0);
      std::fprintf(stderr, "child: %d\n", status);
    }
    if (run_ms != nullptr &&
        kymo::monotonic_ns() - begin_ns >= std::strtoull(run_ms, nullptr, 10) * 1'000'000) {
      break;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  kymo::Registry registry;
  const kymo::Counter steps = registry.counter({.name = "steps", .help = "Steps taken"}).value();
  kymo::ProfilerOptions options;
  options.sink = kymo::make_tsv_sink(argv[1]);
  options.slots = 8;
  options.rows = 50;
  options.flush = std::chrono::milliseconds(20);
  options.ring_file = argc > 2 ? argv[2] : "";
  kymo::Profiler profiler(registry, options);
  if (const auto started = profiler.start(); !started) {
    std::fprintf(stderr, "start: %s\n", started.error().message.c_str());
    return 1;
  }
  std::fprintf(stderr, "started\n");
  std::uint64_t longest_ns = 0;
  std::thread counter([&] { longest_ns = count_until_stopped(steps); });
  record(profiler, steps, {0, 10'000'000});
  const auto stopped = profiler.stop();
  g_stop.store(true);
  counter.join();
  // stop() also reports rows that the disk did not take. In this case the files are complete.
  const bool whole = stopped.ok() || stopped.error().message.starts_with("the recording lacks ");
  const kymo::ProfilerStats s = profiler.stats();
  std::printf(
      "{\"stopped\": %s, \"ticks_due\": %lu, \"rows_written\": %lu, \"missed\": %lu, "
      "\"missed_frozen\": %lu, \"missed_sink_error\": %lu, \"missed_ring_full\": %lu, "
      "\"longest_add_ns\": %lu}\n",
      whole ? "true" : "false", s.ticks_due, s.rows_written, s.missed(), s.missed_frozen,
      s.missed_sink_error, s.missed_ring_full, longest_ns);
  if (!stopped) {
    std::fprintf(stderr, "stop: %s\n", stopped.error().message.c_str());
  }
  return 0;
}
