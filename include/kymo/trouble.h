#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kymo/export.h"
#include "kymo/profiler.h"

namespace kymo {

// Something that a recorder could not do, or that is over.
struct Trouble {
  enum class What : std::uint8_t {
    // The begin or the end of an episode in which it could not keep its rows; or rows that it had
    // kept, and that somebody else has taken away (sink_error, never over). Also, without ticks, if
    // its list of gaps cannot be written or was taken away, or if its file was moved.
    rows,
    // The callback of `metric` has thrown, or has returned a value that is probably negative. Once
    // for each of the two, never over.
    callback_error,
    // The callback of `metric` does not return, so no row is recorded.
    callback_hangs,
    // Metrics were registered after the start, so the recording does not have them. Never over.
    unrecorded,
    // This is a child of fork(), also by daemon(3), and the recorder is in the parent. Never over.
    forked,
    // The destructor of the profiler has stopped the recording, and stop() has failed. Only told to
    // ProfilerOptions::on_trouble. Never over.
    stop_failed,
  };
  MissCause cause =
      MissCause::sink_error;  // of rows; or ring_full: the sink is too slow or blocked
  bool over = false;
  std::uint64_t ticks = 0;  // of rows: lost since the episode began
  std::string text;         // one line for a person
  What what = What::rows;
  std::string metric{};  // whose callback it is
};

// Reports once that a recorder has begun to lose rows because of its sink, and once that this is
// over, however often the sink fails in between. Reports once each time that somebody has removed,
// cut off or moved the file, and if its list of gaps is lost or cannot be written. Reports once that the callback of a metric throws, once that a callback has
// not returned for a second, and once that it has. Reports once each metric that is not recorded
// because it was registered too late. Reports once that it is used in a child of fork(), in which
// the recorder is off. Call look() about once a second, from any thread except the
// sink's and those that run callbacks: what is blocked cannot report itself.
//
// Threads:   one at a time.
// Ownership: refers to the profiler.
// Cost:      one Profiler::stats() for each look().
class KYMO_API TroubleWatch {
 public:
  // An episode is over when nothing was lost for this time.
  static constexpr std::uint64_t kQuietNs = 3'000'000'000;
  // A callback that has not returned for this time hangs.
  static constexpr std::chrono::nanoseconds kHangs{1'000'000'000};

  explicit TroubleWatch(const Profiler& profiler) : profiler_(&profiler) {}

  // Returns what has begun or ended since the last call.
  [[nodiscard]] std::vector<Trouble> look();

 private:
  struct Episode {
    std::uint64_t seen = 0;      // missed ticks at the last look
    std::uint64_t at_begin = 0;  // missed ticks before the episode
    std::uint64_t last_ns = 0;   // when the last loss was seen
    bool running = false;
  };
  // A callback that ran at the last look.
  struct Wait {
    std::string metric;
    std::uint64_t rows = 0;  // that were captured before
    bool told = false;
  };
  void look_at(MissCause cause, std::uint64_t missed, Episode& episode, std::vector<Trouble>* news);
  void look_at_callbacks(std::uint64_t rows, std::vector<Trouble>* news);
  void look_at_metrics(std::vector<Trouble>* news);
  [[nodiscard]] std::string text_of(const Trouble& trouble) const;

  const Profiler* profiler_;
  Episode sink_error_;
  Episode ring_full_;
  LostRows told_;  // the rows that were taken away, at the last report
  std::set<std::pair<std::string, bool>> told_errors_;  // by metric and CallbackError::negative
  Wait wait_;
  std::size_t told_unrecorded_ = 0;  // how many metrics
  bool told_forked_ = false;
};

}  // namespace kymo
