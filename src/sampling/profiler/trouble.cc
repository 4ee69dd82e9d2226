#include "kymo/trouble.h"

#include <utility>

#include "base/clock.h"

namespace kymo {

std::vector<Trouble> TroubleWatch::look() {
  const ProfilerStats stats = profiler_->stats();
  std::vector<Trouble> news;
  look_at(MissCause::sink_error, stats.missed_sink_error, sink_error_, &news);
  look_at(MissCause::ring_full, stats.missed_ring_full, ring_full_, &news);
  if (LostRows lost = profiler_->lost_rows(); !lost.text.empty() && lost.text != told_.text) {
    news.push_back({MissCause::sink_error, false, lost.rows - told_.rows, lost.text});
    told_ = std::move(lost);
  }
  return news;
}

void TroubleWatch::look_at(MissCause cause, std::uint64_t missed, Episode& episode,
                           std::vector<Trouble>* news) {
  const std::uint64_t now_ns = monotonic_ns();
  if (missed != episode.seen) {
    if (!episode.running) {
      episode.running = true;
      episode.at_begin = episode.seen;
      Trouble trouble{cause, false, missed - episode.at_begin, ""};
      trouble.text = text_of(trouble);
      news->push_back(std::move(trouble));
    }
    episode.seen = missed;
    episode.last_ns = now_ns;
  } else if (episode.running && now_ns - episode.last_ns >= kQuietNs) {
    episode.running = false;
    Trouble trouble{cause, true, missed - episode.at_begin, ""};
    trouble.text = text_of(trouble);
    news->push_back(std::move(trouble));
  }
}

std::string TroubleWatch::text_of(const Trouble& trouble) const {
  const std::string ticks = std::to_string(trouble.ticks);
  if (trouble.over) {
    return "the recording goes on: " + ticks +
           (trouble.cause == MissCause::sink_error
                ? " rows could not be written and are listed as missed"
                : " ticks found the ring full and are listed as missed");
  }
  if (trouble.cause == MissCause::ring_full) {
    return "the recording loses rows: the ring is full, because the disk or sink is too slow or "
           "does not answer; missed ticks are counted until it takes rows again";
  }
  const std::string reason = profiler_->last_sink_error();
  return "the recording loses rows: " + (reason.empty() ? "its sink refuses them" : reason) +
         "; missed ticks are counted until it takes rows again";
}

}  // namespace kymo
