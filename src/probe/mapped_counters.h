#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo::probe {

// A counter of another process.
struct MappedMetric {
  Metric metric;
  std::uint32_t first_cell = 0;
  std::vector<std::uint64_t> base_sums;  // one a column: what its cell held at first
};

// The counters that another process has published (kymo/counter_file.h), read where they are: while
// it runs, stands still or is frozen.
//
// Threads: any. Ownership: maps the file, read-only, until it goes. Cost of sum(): a load a column
// and block.
class MappedCounters {
 public:
  // Errors: not_found, permission_denied, invalid_argument (foreign or of another version),
  // data_loss (truncated, or its directory is damaged), failed_precondition (its program is gone).
  static Result<std::unique_ptr<MappedCounters>> open(const std::string& path);
  ~MappedCounters();
  MappedCounters(const MappedCounters&) = delete;
  MappedCounters& operator=(const MappedCounters&) = delete;

  [[nodiscard]] pid_t pid() const;
  // Metrics that the directory had no room for.
  [[nodiscard]] std::uint64_t unlisted() const;
  // Those registered now. Errors: data_loss.
  [[nodiscard]] Result<std::vector<MappedMetric>> metrics() const;
  // out[i] = the value of column i of the metric, now.
  void sum(const MappedMetric& metric, std::uint64_t* out) const noexcept;

 private:
  MappedCounters(const void* memory, std::size_t bytes, std::string path);
  [[nodiscard]] Result<void> check() const;

  const void* memory_;
  std::size_t bytes_;
  std::string path_;
};

// The file beginning with these bytes that the process has mapped to share, as this process can
// open it; none: it has none, or its mappings may not be read.
std::optional<std::string> find_mapped_file(pid_t pid, std::string_view begin);
std::optional<std::string> find_counter_file(pid_t pid);

}  // namespace kymo::probe
