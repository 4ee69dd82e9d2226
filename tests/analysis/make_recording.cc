// Makes a recording with the real recorder, for the tests of what reads recordings: a process of a
// few hundred milliseconds that looks like a dump, with phases, bytes that grow in bursts, and idle
// columns. Usage: make_recording NAME.tsv

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "sampling/history/history.h"

namespace {

using kymo::Kind;
using kymo::Unit;
using std::chrono::milliseconds;

constexpr std::uint64_t kBurstBytes = 256 * 1024;
constexpr int kBursts = 60;
constexpr std::uint64_t kPageBytes = 4096;

struct Metrics {
  kymo::Counter bytes;
  kymo::Counter pages;
  std::shared_ptr<std::atomic<std::uint64_t>> phase;
};

kymo::Result<Metrics> register_metrics(kymo::Registry& registry) {
  auto bytes = registry.counter(
      {"image_written_bytes", "Bytes in the images directory.", Kind::counter, Unit::bytes, {}});
  auto pages =
      registry.counter({"pages_written", "Pages written.", Kind::counter, Unit::pages, {}});
  auto calls =
      registry.counter_family({"criu_calls",
                               "Calls of CRIU.",
                               Kind::counter,
                               Unit::count,
                               {{"call", {"dump", "restore"}}, {"result", {"ok", "failed"}}}});
  auto phase = std::make_shared<std::atomic<std::uint64_t>>(0);
  auto gauge = registry.callback({"phase", "What CRIU is doing.", Kind::gauge, Unit::count, {}},
                                 [phase] { return phase->load(std::memory_order_relaxed); });
  if (!bytes) return bytes.error();
  if (!pages) return pages.error();
  if (!calls) return calls.error();
  if (!gauge) return gauge.error();
  return Metrics{*bytes, *pages, phase};
}

// What a dump does, at a pace that a test can wait for.
void pretend_dump(const Metrics& metrics, const kymo::Profiler& profiler, kymo::History& history,
                  kymo::History::CutId cut) {
  const auto enter = [&](const char* name, std::uint64_t number) {
    metrics.phase->store(number, std::memory_order_relaxed);
    history.mark(cut, name, profiler.now_ns());
  };
  std::this_thread::sleep_for(milliseconds(100));
  enter("request", 1);
  std::this_thread::sleep_for(milliseconds(20));
  enter("pre-dump", 2);
  std::this_thread::sleep_for(milliseconds(30));
  enter("network-lock", 3);
  for (int burst = 0; burst < kBursts; ++burst) {
    metrics.bytes.add(kBurstBytes);
    std::this_thread::sleep_for(milliseconds(burst < kBursts / 2 ? 4 : 2));
  }
  metrics.pages.add(kBursts * kBurstBytes / kPageBytes);
  enter("post-dump", 4);
  std::this_thread::sleep_for(milliseconds(10));
  enter("done", 0);
  std::this_thread::sleep_for(milliseconds(100));
}

kymo::Result<void> record(const std::string& path) {
  kymo::Registry registry;
  auto metrics = register_metrics(registry);
  if (!metrics) return metrics.error();
  auto history = std::make_shared<kymo::History>(std::chrono::seconds(2));
  kymo::ProfilerOptions options;
  options.sink = history;
  kymo::Profiler profiler(registry, options);
  if (auto started = profiler.start(); !started) return started;
  auto cut = history->begin(path, 0, {{"request", "dump"}, {"job", "churn-1"}});
  if (!cut) return cut.error();
  pretend_dump(*metrics, profiler, *history, *cut);
  history->end(*cut, profiler.now_ns(), {{"outcome", "ok"}});
  if (auto stopped = profiler.stop(); !stopped) return stopped;
  return history->wait(*cut, milliseconds(5000));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_recording NAME.tsv\n");
    return 2;
  }
  if (auto recorded = record(argv[1]); !recorded) {
    std::fprintf(stderr, "make_recording: %s\n", recorded.error().message.c_str());
    return 1;
  }
  return 0;
}
