#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/metric.h"
#include "kymo/result.h"

namespace kymo::criu {

// CRIU's own statistics of a dump (images/stats.proto). Times are CRIU's: gettimeofday differences
// in 32 bits, so a step of the wall clock corrupts them and they wrap after 71.6 minutes.
//
// A new figure of CRIU needs a field in images.proto, a member here, a row in the table of stats.cc
// and a field of the same name and number in api/kymo/v1/kymo.proto. Reading, JSON, the API, the
// counters of kymod, the tables and the output in Podman's format are made from these.
struct DumpStats {
  std::uint32_t freezing_time_us = 0;
  std::uint32_t frozen_time_us = 0;
  std::uint32_t memdump_time_us = 0;
  std::uint32_t memwrite_time_us = 0;
  std::uint64_t pages_scanned = 0;
  std::uint64_t pages_skipped_parent = 0;
  std::uint64_t pages_written = 0;
  std::optional<std::uint32_t> irmap_resolve_us;
  std::optional<std::uint64_t> pages_lazy;
  std::optional<std::uint64_t> page_pipes;
  std::optional<std::uint64_t> page_pipe_bufs;
  std::optional<std::uint64_t> shpages_scanned;
  std::optional<std::uint64_t> shpages_skipped_parent;
  std::optional<std::uint64_t> shpages_written;

  // CRIU counts the pages of shared memory apart from all others.
  [[nodiscard]] std::uint64_t all_pages_written() const {
    return pages_written + shpages_written.value_or(0);
  }
};

// CRIU's own statistics of a restore.
struct RestoreStats {
  std::uint64_t pages_compared = 0;
  std::uint64_t pages_skipped_cow = 0;
  std::uint32_t forking_time_us = 0;
  std::uint32_t restore_time_us = 0;
  std::optional<std::uint64_t> pages_restored;
};

// One figure of CRIU's statistics, with the name that files, tables and the API use.
struct StatsFigure {
  const char* name;  // CRIU's own name; a time has its unit appended
  Unit unit;
  std::uint64_t value;
  const char* help;
};

// All figures that CRIU gave, in the order of its own message.
std::vector<StatsFigure> figures(const DumpStats& stats);
std::vector<StatsFigure> figures(const RestoreStats& stats);

// A figure that kymod sums over all requests, in a counter of the same name.
struct SummedFigure {
  std::string_view name;
  Unit unit;
  std::string_view help;  // of the counter
};

// All figures that are summed: first those in pages, then the others. Within these, those of dumps
// come before those of restores.
std::vector<SummedFigure> summed_figures();

// Whether the statistics that Podman prints (`podman container checkpoint --print-stats`) have the
// figure of this name. Podman calls it the same, but writes a time without `_us`.
bool is_podman_figure(std::string_view name);

// Known causes of a slow dump that the figures alone show, one line each: the poll interval of the
// freezer, a slow disk.
std::vector<std::string> known_causes(const DumpStats& stats);

// CRIU's times wrap at 2^32 us. Returns the longest time that `time_us` can stand for and that is
// not longer than `span_us`, the time that the log covers. Returns nothing if `time_us` itself is
// the only possibility.
std::optional<std::uint64_t> unwrapped_us(std::uint32_t time_us, std::uint64_t span_us);

// Reads a `stats-dump` or `stats-restore` image.
// Errors: show the file, the offset and the cause: not_found, data_loss (truncated),
//         invalid_argument (not such an image, or the other of the two).
Result<DumpStats> read_dump_stats(const std::string& path);
Result<RestoreStats> read_restore_stats(const std::string& path);

// The same from bytes. The errors show `name` in place of the path. Also reads the images of old
// versions of CRIU, which do not have the first of the two magic words.
Result<DumpStats> parse_dump_stats(std::span<const std::byte> image, std::string_view name);
Result<RestoreStats> parse_restore_stats(std::span<const std::byte> image, std::string_view name);

}  // namespace kymo::criu
