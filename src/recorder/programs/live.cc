#include "recorder/programs/live.h"

#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/mappings.h"
#include "base/proc/process.h"
#include "recorder/metrics/metric_rules.h"
#include "recorder/metrics/unit_names.h"
#include "recorder/programs/mapped_counters.h"
#include "recorder/sampling/files/metadata.h"
#include "recorder/sampling/ring/ring_description.h"
#include "recorder/sampling/ring/ring_memory.h"
#include "recorder/sampling/ring/ring_reader.h"

namespace kymo::record {
namespace {

class RingSource : public LiveSource {
 public:
  RingSource(std::unique_ptr<RingMemory> ring, std::vector<LiveValue> columns)
      : ring_(std::move(ring)), columns_(std::move(columns)) {}

  Result<LiveRow> read() override {
    LiveRow row;
    // Try the lock before reading the row: if no recorder holds the file, no newer row can follow.
    // This object then keeps the lock, but the view ends with this row.
    row.ended = ring_->try_lock();
    const std::vector<std::uint64_t> words = peek_rows(*ring_, 1);
    if (words.empty()) {
      return row;
    }
    row.time_ns = words.front();
    row.values = columns_;
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      row.values[i].value = words[i + 1];
    }
    return row;
  }

 private:
  std::unique_ptr<RingMemory> ring_;
  std::vector<LiveValue> columns_;
};

class CounterSource : public LiveSource {
 public:
  CounterSource(std::unique_ptr<probe::MappedCounters> counters, std::string path)
      : counters_(std::move(counters)), path_(std::move(path)) {}

  Result<LiveRow> read() override {
    LiveRow row;
    row.ended = !process_maps(counters_->pid(), path_);
    row.time_ns = monotonic_ns();
    const Result<std::vector<probe::MappedMetric>> metrics = counters_->metrics();
    if (!metrics) {
      return metrics.error();
    }
    for (const probe::MappedMetric& metric : *metrics) {
      std::vector<std::uint64_t> values(metric.base_sums.size());
      counters_->sum(metric, values.data());
      const std::vector<Column> columns = columns_of(metric.metric);
      for (std::size_t i = 0; i < values.size(); ++i) {
        row.values.push_back(
            {columns[i].name, true, std::string(unit_name(metric.metric.unit)), values[i]});
      }
    }
    return row;
  }

 private:
  std::unique_ptr<probe::MappedCounters> counters_;
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<LiveSource>> watch_ring(const std::string& path) {
  Result<std::unique_ptr<RingMemory>> ring = RingMemory::open_file(path);
  if (!ring) {
    return ring.error();
  }
  Result<RingDescription> description = describe(**ring, path);
  if (!description) {
    return description.error();
  }
  std::vector<LiveValue> columns;
  for (RingDescription::Column& column : description->columns) {
    columns.push_back({std::move(column.name), column.counter, std::move(column.unit), 0});
  }
  return std::unique_ptr<LiveSource>(new RingSource(*std::move(ring), std::move(columns)));
}

Result<std::unique_ptr<LiveSource>> watch_process(pid_t pid) {
  if (Result<probe::Process> process = probe::read_process(pid); !process) {
    return process.error();
  }
  if (const auto path = probe::find_counter_file(pid); path) {
    auto counters = probe::MappedCounters::open(*path, pid);
    if (!counters) {
      return counters.error();
    }
    return std::unique_ptr<LiveSource>(new CounterSource(*std::move(counters), *path));
  }
  if (const auto path = probe::find_mapped_file(pid, {kRingMagic.data(), kRingMagic.size()});
      path) {
    return watch_ring(*path);
  }
  return Error{Code::not_found,
               "process " + std::to_string(pid) +
                   " has neither published counters nor a ring file, or its mappings may not be "
                   "read (run as its user or as root)",
               0};
}

}  // namespace kymo::record
