#include "kymo/trouble.h"

#include <utility>

#include "base/clock.h"
#include "base/human.h"
#include "recorder/sampling/profiler/callback_errors.h"

namespace kymo {

std::vector<Trouble> TroubleWatch::look() {
  std::vector<Trouble> news;
  if (profiler_->runs_in_parent()) {
    if (!told_forked_) {
      news.push_back({.text = "this process records nothing: it is a child of fork() or daemon(), "
                              "and the recorder stayed with the parent; start a new one here",
                      .what = Trouble::What::forked});
      told_forked_ = true;
    }
    return news;
  }
  const ProfilerStats stats = profiler_->stats();
  look_at(MissCause::sink_error, stats.missed_sink_error, sink_error_, &news);
  look_at(MissCause::ring_full, stats.missed_ring_full, ring_full_, &news);
  if (LostRows lost = profiler_->lost_rows(); !lost.text.empty() && lost.text != told_.text) {
    news.push_back({MissCause::sink_error, false, lost.rows - told_.rows, lost.text});
    told_ = std::move(lost);
  }
  look_at_callbacks(stats.rows_captured, &news);
  look_at_metrics(&news);
  return news;
}

void TroubleWatch::look_at_callbacks(std::uint64_t rows, std::vector<Trouble>* news) {
  for (const CallbackError& error : profiler_->callback_errors()) {
    if (told_errors_.emplace(error.metric, error.negative).second) {
      news->push_back({.text = kymo::text_of(error),
                       .what = Trouble::What::callback_error,
                       .metric = error.metric});
    }
  }
  RunningCallback now = profiler_->running_callback();
  // Two looks must see it in the same sample. One alone could see a sample that begins only now,
  // because the whole program stood still before.
  if (now.metric.empty() || now.metric != wait_.metric || rows != wait_.rows) {
    if (wait_.told) {
      news->push_back(
          {.over = true,
           .text = "the callback of metric '" + wait_.metric +
                   (now.stopping ? "' has returned: the recording is over, and stop() can "
                                   "finish its files now"
                                 : "' has returned: the recording goes on, and the ticks "
                                   "meanwhile are listed as missed"),
           .what = Trouble::What::callback_hangs,
           .metric = wait_.metric});
    }
    wait_ = {std::move(now.metric), rows, false};
  } else if (!wait_.told && now.waited >= kHangs) {
    wait_.told = true;
    news->push_back({.text = "the callback of metric '" + wait_.metric + "' has not returned for " +
                             human::duration(now.waited) +
                             (now.stopping ? ": stop() cannot finish the recording until it does"
                                           : ": no row is recorded until it does"),
                     .what = Trouble::What::callback_hangs,
                     .metric = wait_.metric});
  }
}

void TroubleWatch::look_at_metrics(std::vector<Trouble>* news) {
  std::vector<std::string> names = profiler_->unrecorded_metrics();
  const std::size_t all = names.size();
  if (all > told_unrecorded_) {
    names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(told_unrecorded_));
    news->push_back({.text = text_of_unrecorded(names), .what = Trouble::What::unrecorded});
    told_unrecorded_ = all;
  }
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
