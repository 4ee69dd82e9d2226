#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "input_file.h"
#include "kymo/counter.h"
#include "recorder/metrics/counter_file_layout.h"
#include "recorder/metrics/metric_rules.h"
#include "recorder/programs/mapped_counters.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

constexpr std::size_t kFixedCounterBytes = offsetof(CounterFileHeader, directory_bytes);

// Writes a header that fits the size of the file and names this process. The other bytes stay as
// they are.
std::size_t mend_header(std::string& bytes) {
  bytes.resize(std::max(bytes.size(), sizeof(CounterFileHeader)));
  CounterFileHeader header;
  header.magic = kCounterFileMagic;
  header.format_version = kCounterFileVersion;
  header.pid = static_cast<std::uint32_t>(::getpid());
  header.directory_offset = sizeof(CounterFileHeader);
  header.directory_capacity = kDirectoryBytes;
  header.blocks_offset = header.directory_offset + header.directory_capacity;
  header.blocks = 2;
  header.cells = kMaxCells;
  header.total_bytes = header.blocks_offset + header.blocks * header.cells * sizeof(std::uint64_t);
  std::memcpy(bytes.data(), static_cast<const void*>(&header), kFixedCounterBytes);
  bytes.resize(std::min<std::size_t>(bytes.size(), header.total_bytes));
  return header.total_bytes;
}

void read_counters(const std::string& path) {
  const auto counters = probe::MappedCounters::open(path);
  if (!counters) {
    require(!counters.error().message.empty(), "an error says something");
    return;
  }
  const auto metrics = (*counters)->metrics();
  if (!metrics) {
    require(!metrics.error().message.empty(), "an error says something");
    return;
  }
  for (const probe::MappedMetric& metric : *metrics) {
    require(columns_of(metric.metric).size() == metric.base_sums.size(), "a cell a column");
    std::vector<std::uint64_t> values(metric.base_sums.size());
    (*counters)->sum(metric, values.data());
  }
}

}  // namespace

void counters(Bytes data) {
  static InputFile file;
  std::string bytes = text_of(data);
  file.write(bytes);
  read_counters(file.path());
  const std::size_t size = mend_header(bytes);
  file.write(bytes, size);
  read_counters(file.path());
}

}  // namespace kymo::fuzz
