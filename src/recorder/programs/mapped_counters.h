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
  std::vector<std::uint64_t> base_sums;  // for each column, the sum of its cells at registration
};

// The counters that another process has published (kymo/counter_file.h). They are read in place,
// while the process runs, is stopped or is frozen.
//
// Threads:   any.
// Ownership: maps the file read-only until it is destroyed.
// Cost:      of sum(): one load for each column and block.
class MappedCounters {
 public:
  // Errors: not_found, permission_denied, invalid_argument (not a counter file, or another
  //         version), data_loss (truncated), failed_precondition (its program is gone).
  // `pid`: the process that is believed to have published them. In the file, the program has the
  // pid of its own pid namespace, such as 1 in a container. 0: not known.
  static Result<std::unique_ptr<MappedCounters>> open(const std::string& path, pid_t pid = 0);
  ~MappedCounters();
  MappedCounters(const MappedCounters&) = delete;
  MappedCounters& operator=(const MappedCounters&) = delete;

  // The pid of the program, as the file has it.
  [[nodiscard]] pid_t pid() const;
  // The number of metrics that the directory had no room for.
  [[nodiscard]] std::uint64_t unlisted() const;
  // The metrics that are registered now. Errors: data_loss if the directory is damaged.
  [[nodiscard]] Result<std::vector<MappedMetric>> metrics() const;
  // out[i] = the value of column i of the metric, now.
  void sum(const MappedMetric& metric, std::uint64_t* out) const noexcept;

 private:
  MappedCounters(const void* memory, std::size_t bytes, std::string path);
  [[nodiscard]] Result<void> check(pid_t believed) const;

  const void* memory_;
  std::size_t bytes_;
  std::string path_;
};

// Find a file that the process has mapped as shared and that begins with `begin`, or with the magic
// bytes of a counter file. They return a path by which this process can open the file, or nothing
// if there is no such file or if the mappings of the process may not be read.
std::optional<std::string> find_mapped_file(pid_t pid, std::string_view begin);
std::optional<std::string> find_counter_file(pid_t pid);

}  // namespace kymo::probe
