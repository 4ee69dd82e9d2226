#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::criu {

// CRIU's own statistics of a dump (images/stats.proto). Times are CRIU's: gettimeofday differences
// in 32 bits, so a step of the wall clock corrupts them and they wrap after 71.6 minutes.
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
};

// CRIU's own statistics of a restore.
struct RestoreStats {
  std::uint64_t pages_compared = 0;
  std::uint64_t pages_skipped_cow = 0;
  std::uint32_t forking_time_us = 0;
  std::uint32_t restore_time_us = 0;
  std::optional<std::uint64_t> pages_restored;
};

// Reads a `stats-dump` or `stats-restore` image. Errors name the file, the offset and what is
// wrong: not_found, data_loss (truncated), invalid_argument (foreign, or the other kind).
Result<DumpStats> read_dump_stats(const std::string& path);
Result<RestoreStats> read_restore_stats(const std::string& path);

// The same from bytes; `name` stands in the errors where the file's path would. Images of old
// CRIUs, which lack the first of the two magic words, are read as well.
Result<DumpStats> parse_dump_stats(std::span<const std::byte> image, std::string_view name);
Result<RestoreStats> parse_restore_stats(std::span<const std::byte> image, std::string_view name);

}  // namespace kymo::criu
