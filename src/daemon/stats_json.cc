#include "daemon/stats_json.h"

#include <nlohmann/json.hpp>

#include "report/checkpoint_stats.h"

namespace kymo::daemon {
nlohmann::json to_json(const criu::DumpStats& stats) {
  return report::json_of(figures(stats));
}

nlohmann::json to_json(const criu::RestoreStats& stats) {
  return report::json_of(figures(stats));
}

nlohmann::json to_json(const std::vector<runtime::PreDumpRound>& rounds) {
  nlohmann::json all = nlohmann::json::array();
  for (const runtime::PreDumpRound& round : rounds) {
    all.push_back({{"duration_ns", round.duration_ns},
                   {"criu_time_ns", round.criu_time_ns},
                   {"pages_written", round.pages_written},
                   {"frozen_time_us", round.frozen_time_us},
                   {"image_bytes", round.image_bytes}});
  }
  return all;
}

v1::PreDump to_api(const runtime::PreDumpRound& round) {
  v1::PreDump out;
  out.set_duration_ns(round.duration_ns);
  out.set_criu_time_ns(round.criu_time_ns);
  out.set_pages_written(round.pages_written);
  out.set_frozen_time_us(round.frozen_time_us);
  out.set_image_bytes(round.image_bytes);
  return out;
}

v1::DumpStats to_api(const criu::DumpStats& stats) {
  v1::DumpStats out;
  out.set_freezing_time_us(stats.freezing_time_us);
  out.set_frozen_time_us(stats.frozen_time_us);
  out.set_memdump_time_us(stats.memdump_time_us);
  out.set_memwrite_time_us(stats.memwrite_time_us);
  out.set_pages_scanned(stats.pages_scanned);
  out.set_pages_skipped_parent(stats.pages_skipped_parent);
  out.set_pages_written(stats.pages_written);
  if (stats.irmap_resolve_us) out.set_irmap_resolve_us(*stats.irmap_resolve_us);
  if (stats.pages_lazy) out.set_pages_lazy(*stats.pages_lazy);
  if (stats.page_pipes) out.set_page_pipes(*stats.page_pipes);
  if (stats.page_pipe_bufs) out.set_page_pipe_bufs(*stats.page_pipe_bufs);
  if (stats.shpages_scanned) out.set_shpages_scanned(*stats.shpages_scanned);
  if (stats.shpages_skipped_parent) out.set_shpages_skipped_parent(*stats.shpages_skipped_parent);
  if (stats.shpages_written) out.set_shpages_written(*stats.shpages_written);
  return out;
}

v1::RestoreStats to_api(const criu::RestoreStats& stats) {
  v1::RestoreStats out;
  out.set_pages_compared(stats.pages_compared);
  out.set_pages_skipped_cow(stats.pages_skipped_cow);
  out.set_forking_time_us(stats.forking_time_us);
  out.set_restore_time_us(stats.restore_time_us);
  if (stats.pages_restored) out.set_pages_restored(*stats.pages_restored);
  return out;
}

}  // namespace kymo::daemon
