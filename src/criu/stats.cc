#include "criu/stats.h"

#include <vector>

#include "criu/images.h"
#include "criu/images.pb.h"
#include "criu/memory.h"

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

void add(std::vector<StatsFigure>& all, const char* name, Unit unit,
         const std::optional<std::uint64_t>& value, const char* help) {
  if (value) {
    all.push_back({name, unit, *value, help});
  }
}

}  // namespace

std::vector<StatsFigure> figures(const DumpStats& stats) {
  using U = Unit;
  std::vector<StatsFigure> all{
      {"freezing_time_us", U::microseconds, stats.freezing_time_us, "until every task stood still"},
      {"frozen_time_us", U::microseconds, stats.frozen_time_us, "that they stood still"},
      {"memdump_time_us", U::microseconds, stats.memdump_time_us,
       "of it on memory, writing included"},
      {"memwrite_time_us", U::microseconds, stats.memwrite_time_us, "of it writing pages"},
      {"pages_scanned", U::pages, stats.pages_scanned, "looked at"},
      {"pages_skipped_parent", U::pages, stats.pages_skipped_parent, "left to the parent image"},
      {"pages_written", U::pages, stats.pages_written, "written"}};
  add(all, "irmap_resolve_us", U::microseconds, stats.irmap_resolve_us, "finding inotify's files");
  add(all, "pages_lazy", U::pages, stats.pages_lazy, "that may be fetched after the restore");
  add(all, "page_pipes", U::count, stats.page_pipes, "pipes that pages went through");
  add(all, "page_pipe_bufs", U::count, stats.page_pipe_bufs, "buffers of those pipes");
  add(all, "shpages_scanned", U::pages, stats.shpages_scanned, "of shared memory looked at");
  add(all, "shpages_skipped_parent", U::pages, stats.shpages_skipped_parent,
      "of shared memory left to the parent image");
  add(all, "shpages_written", U::pages, stats.shpages_written, "of shared memory written");
  return all;
}

std::vector<StatsFigure> figures(const RestoreStats& stats) {
  using U = Unit;
  std::vector<StatsFigure> all{
      {"pages_compared", U::pages, stats.pages_compared, "compared with those of a parent process"},
      {"pages_skipped_cow", U::pages, stats.pages_skipped_cow, "shared with it"},
      {"forking_time_us", U::microseconds, stats.forking_time_us, "making the processes"},
      {"restore_time_us", U::microseconds, stats.restore_time_us,
       "until all was in place, before the last hooks"}};
  add(all, "pages_restored", U::pages, stats.pages_restored, "put back");
  return all;
}

std::vector<std::string> known_causes(const DumpStats& stats) {
  constexpr std::uint64_t kFreezerPoll = 100'000;  // us: the poll interval in criu/seize.c
  constexpr std::uint64_t kSlow = 200'000'000;     // bytes a second; current disks are faster
  std::vector<std::string> causes;
  if (stats.freezing_time_us >= kFreezerPoll * 9 / 10) {
    causes.push_back("freezing took " + std::to_string(stats.freezing_time_us / 1000) +
                     " ms: with the cgroup freezer CRIU looks whether all stand still only every "
                     "100 ms");
  }
  if (stats.memwrite_time_us > kFreezerPoll) {
    const std::uint64_t bytes_a_second =
        stats.pages_written * kPageBytes * 1'000'000 / stats.memwrite_time_us;
    if (bytes_a_second < kSlow) {
      causes.push_back("memory was written at " + std::to_string(bytes_a_second / 1'000'000) +
                       " MB/s: the images' disk is slow, and the processes waited for it");
    }
  }
  return causes;
}

std::optional<std::uint64_t> unwrapped_us(std::uint32_t time_us, std::uint64_t span_us) {
  constexpr std::uint64_t kWrap = std::uint64_t{1} << 32U;
  if (span_us < kWrap + time_us) {
    return {};
  }
  return time_us + (span_us - time_us) / kWrap * kWrap;
}

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
