#include "criu/stats.h"

#include <vector>

#include "criu/images.h"
#include "criu/images.pb.h"

namespace kymo::criu {
namespace {

Error unreadable(std::string_view name, const std::string& why, Code code) {
  return Error{code, "cannot read " + std::string(name) + ": " + why};
}

// The one message of a statistics image.
Result<wire::StatsEntry> parse_entry(std::span<const std::byte> image, std::string_view name) {
  const auto messages = image_messages(image, kStatsImage, name);
  if (!messages) {
    return messages.error();
  }
  if (messages->empty()) {
    return unreadable(name,
                      "it holds no statistics: it ends at byte " + std::to_string(image.size()),
                      Code::data_loss);
  }
  if (messages->size() > 1) {
    return unreadable(name, "it holds more than one message: it is not a statistics image",
                      Code::invalid_argument);
  }
  const std::span<const std::byte> message = messages->front();
  wire::StatsEntry entry;
  if (!parse_message(message, entry)) {
    const auto offset = static_cast<std::size_t>(message.data() - image.data());
    return unreadable(name,
                      "the message at byte " + std::to_string(offset) + " is not CRIU's statistics",
                      Code::invalid_argument);
  }
  return entry;
}

}  // namespace

Result<DumpStats> parse_dump_stats(std::span<const std::byte> image, std::string_view name) {
  const Result<wire::StatsEntry> entry = parse_entry(image, name);
  if (!entry) {
    return entry.error();
  }
  if (!entry->has_dump()) {
    return unreadable(name,
                      "it holds no statistics of a dump (those of a restore: read stats-dump)",
                      Code::invalid_argument);
  }
  const wire::DumpStatsEntry& d = entry->dump();
  DumpStats stats;
  stats.freezing_time_us = d.freezing_time();
  stats.frozen_time_us = d.frozen_time();
  stats.memdump_time_us = d.memdump_time();
  stats.memwrite_time_us = d.memwrite_time();
  stats.pages_scanned = d.pages_scanned();
  stats.pages_skipped_parent = d.pages_skipped_parent();
  stats.pages_written = d.pages_written();
  if (d.has_irmap_resolve()) stats.irmap_resolve_us = d.irmap_resolve();
  if (d.has_pages_lazy()) stats.pages_lazy = d.pages_lazy();
  if (d.has_page_pipes()) stats.page_pipes = d.page_pipes();
  if (d.has_page_pipe_bufs()) stats.page_pipe_bufs = d.page_pipe_bufs();
  if (d.has_shpages_scanned()) stats.shpages_scanned = d.shpages_scanned();
  if (d.has_shpages_skipped_parent()) stats.shpages_skipped_parent = d.shpages_skipped_parent();
  if (d.has_shpages_written()) stats.shpages_written = d.shpages_written();
  return stats;
}

Result<RestoreStats> parse_restore_stats(std::span<const std::byte> image, std::string_view name) {
  const Result<wire::StatsEntry> entry = parse_entry(image, name);
  if (!entry) {
    return entry.error();
  }
  if (!entry->has_restore()) {
    return unreadable(name,
                      "it holds no statistics of a restore (those of a dump: read stats-restore)",
                      Code::invalid_argument);
  }
  const wire::RestoreStatsEntry& r = entry->restore();
  RestoreStats stats;
  stats.pages_compared = r.pages_compared();
  stats.pages_skipped_cow = r.pages_skipped_cow();
  stats.forking_time_us = r.forking_time();
  stats.restore_time_us = r.restore_time();
  if (r.has_pages_restored()) stats.pages_restored = r.pages_restored();
  return stats;
}

Result<DumpStats> read_dump_stats(const std::string& path) {
  const auto bytes = read_image(path);
  return bytes ? parse_dump_stats(*bytes, path) : Result<DumpStats>(bytes.error());
}

Result<RestoreStats> read_restore_stats(const std::string& path) {
  const auto bytes = read_image(path);
  return bytes ? parse_restore_stats(*bytes, path) : Result<RestoreStats>(bytes.error());
}

}  // namespace kymo::criu
