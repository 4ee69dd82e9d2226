// Makes a recording for the tests of programs that read recordings: 440 ms that look like a dump,
// with phases, bytes that grow in bursts, and idle columns. The registry and the files are real. The
// time is simulated, so that the recording is the same on every machine. Recordings with different
// names differ only in how late their samples are.
// Usage: make_recording NAME.tsv

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "kymo/registry.h"
#include "recorder/sampling/history/cut_sink.h"

namespace {

using kymo::Kind;
using kymo::Unit;

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

constexpr std::uint64_t kTickNs = 1'000'000;
constexpr std::size_t kRowsPerSlot = 20;

// What happens in one millisecond of the pretended dump, given as a time since its start.
void pretend_dump(const Metrics& metrics, kymo::CutSink& cuts, kymo::CutSink::CutId cut, int tick) {
  const auto enter = [&](const char* name, std::uint64_t number) {
    metrics.phase->store(number, std::memory_order_relaxed);
    cuts.mark(cut, name, static_cast<std::uint64_t>(tick) * kTickNs);
  };
  constexpr int kSlowly = 4;  // milliseconds from one burst to the next, in the first half
  constexpr int kFast = 2;
  constexpr int kBegin = 150;
  constexpr int kMiddle = kBegin + kBursts / 2 * kSlowly;
  constexpr int kEnd = kMiddle + kBursts / 2 * kFast;
  if (tick == 100) enter("request", 1);
  if (tick == 120) enter("pre-dump", 2);
  if (tick == kBegin) enter("network-lock", 3);
  const bool slowly = tick >= kBegin && tick < kMiddle && (tick - kBegin) % kSlowly == 0;
  const bool fast = tick >= kMiddle && tick < kEnd && (tick - kMiddle) % kFast == 0;
  if (slowly || fast) metrics.bytes.add(kBurstBytes);
  if (tick == kEnd) {
    metrics.pages.add(kBursts * kBurstBytes / kPageBytes);
    enter("post-dump", 4);
  }
  if (tick == kEnd + 10) enter("done", 0);
}

kymo::RecordingInfo description(const kymo::Sampler& sampler) {
  kymo::RecordingInfo info;
  info.columns = sampler.columns();
  info.interval = std::chrono::nanoseconds(kTickNs);
  info.start_unix_ns = 1'790'000'000'000'000'000;
  info.start_monotonic_ns = 5'000'000'000;
  info.slots = 16;
  info.rows_per_slot = kRowsPerSlot;
  return info;
}

kymo::Result<void> record(const std::string& path) {
  kymo::Registry registry;
  auto metrics = register_metrics(registry);
  if (!metrics) return metrics.error();
  auto sampler = registry.sampler({});
  if (!sampler) return sampler.error();
  kymo::CutSink cuts(std::chrono::seconds(2));
  if (auto opened = cuts.open(description(**sampler)); !opened) return opened;
  auto cut = cuts.begin(path, 0, {{"request", "dump"}, {"job", "churn-1"}});
  if (!cut) return cut.error();
  // Samples are late by some tens of microseconds. The path is the seed, so each recording has its
  // own delays.
  std::minstd_rand late(static_cast<unsigned>(std::hash<std::string>()(path)));
  std::vector<std::uint64_t> rows;
  kymo::ProfilerStats stats;
  constexpr int kTicks = 440;
  for (int tick = 0; tick < kTicks; ++tick) {
    pretend_dump(*metrics, cuts, *cut, tick);
    const std::uint64_t late_ns = 20'000 + late() % 80'000;
    const std::size_t row = rows.size();
    rows.resize(row + 1 + (*sampler)->columns().size());
    rows[row] = static_cast<std::uint64_t>(tick) * kTickNs + late_ns;
    (*sampler)->read(&rows[row + 1]);
    stats.timing_error_ns += late_ns;
    stats.timing_error_max_ns = std::max(stats.timing_error_max_ns, late_ns);
    if ((tick + 1) % static_cast<int>(kRowsPerSlot) == 0) {
      const std::size_t stride = rows.size() / kRowsPerSlot;
      if (auto kept = cuts.write({rows.data(), kRowsPerSlot, stride}); !kept) return kept;
      rows.clear();
    }
  }
  stats.sample_window_max_ns = 1000;
  stats.duration_ns = kTicks * kTickNs;
  cuts.end(*cut, stats.duration_ns, {{"outcome", "ok"}});
  if (auto closed = cuts.close(stats); !closed) return closed;
  return cuts.wait(*cut, std::chrono::milliseconds(0));  // close() has waited for it
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
