// Records a histogram and other metrics with the real recorder. At the end it writes what /metrics
// would serve, which the export must equal. Usage: histogram_program NAME.tsv METRICS.txt

#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "kymo/gauge.h"
#include "kymo/profiler.h"
#include "kymo/prometheus.h"
#include "kymo/registry.h"
#include "kymo/sink.h"

namespace {

// Records values of four orders of magnitude. They are the same in each run.
void record_waits(const kymo::Histogram& waits, const kymo::Histogram& sizes,
                  const kymo::Counter& requests) {
  std::uint64_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t drawn = state >> 33U;
    waits.record((drawn % 1000) << (drawn / 1000 % 6));
    sizes.record(drawn % 300);
    requests.add(1);
    if (i % 200 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

kymo::Result<void> record(const std::string& path, const std::string& metrics) {
  kymo::Registry registry;
  const auto waits = registry.histogram(
      {"wait_us", "How long requests waited.", kymo::Kind::counter, kymo::Unit::microseconds, {}},
      {.first = 64, .last = 16384, .per_doubling = 4});
  if (!waits) return waits.error();
  const auto sizes = registry.histogram(
      {"batch_size", "Entries of a batch.", kymo::Kind::counter, kymo::Unit::count, {}},
      {.first = 1, .last = 256, .per_doubling = 1});
  if (!sizes) return sizes.error();
  const auto requests =
      registry.counter({"requests_total", "Requests.", kymo::Kind::counter, kymo::Unit::count, {}});
  if (!requests) return requests.error();
  // Names of which OpenMetrics allows only one as the name of a family.
  const auto queued_total =
      registry.counter({.name = "queued_total", .help = "Queued since the start."});
  if (!queued_total) return queued_total.error();
  const auto queued = kymo::make_gauge(registry, {.name = "queued", .help = "Queued now."}, 3);
  if (!queued) return queued.error();
  const auto wait =
      registry.counter({.name = "wait_ns", .help = "Waited.", .unit = kymo::Unit::nanoseconds});
  if (!wait) return wait.error();
  kymo::ProfilerOptions options;
  options.sink = kymo::make_tsv_sink(path);
  options.prometheus_prefix = "shop_";
  kymo::Profiler profiler(registry, options);
  if (auto started = profiler.start(); !started) return started;
  record_waits(*waits, *sizes, *requests);
  if (auto stopped = profiler.stop(); !stopped) return stopped;
  const auto families =
      kymo::make_prometheus_collectable(registry, options.prometheus_prefix)->Collect();
  std::ofstream(metrics) << prometheus::TextSerializer().Serialize(families);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: histogram_program NAME.tsv METRICS.txt\n");
    return 2;
  }
  if (auto recorded = record(argv[1], argv[2]); !recorded) {
    std::fprintf(stderr, "histogram_program: %s\n", recorded.error().message.c_str());
    return 1;
  }
  return 0;
}
