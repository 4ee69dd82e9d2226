#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kymo/export.h"
#include "kymo/profiler.h"

namespace kymo {

// An episode in which a recorder could not keep its rows: that it has begun, or that it is over.
struct Trouble {
  MissCause cause = MissCause::sink_error;  // or ring_full: the sink is too slow or stands still
  bool over = false;
  std::uint64_t ticks = 0;  // lost since the episode began
  std::string text;         // one line for a person
};

// Says once that a recorder has begun to lose rows because of its sink, and once that it no longer
// does, however often it fails in between. Look at it about once a second, from any thread but the
// sink's: a sink that stands still is seen from outside alone.
//
// Threads: one at a time. Ownership: refers to the profiler. Cost: a few loads.
class KYMO_API TroubleWatch {
 public:
  // An episode is over when nothing was lost for so long.
  static constexpr std::uint64_t kQuietNs = 3'000'000'000;

  explicit TroubleWatch(const Profiler& profiler) : profiler_(&profiler) {}

  // What has begun or ended since the last look.
  [[nodiscard]] std::vector<Trouble> look();

 private:
  struct Episode {
    std::uint64_t seen = 0;      // missed ticks at the last look
    std::uint64_t at_begin = 0;  // and before the episode
    std::uint64_t last_ns = 0;   // when the last were seen to be lost
    bool running = false;
  };
  void look_at(MissCause cause, std::uint64_t missed, Episode& episode, std::vector<Trouble>* news);
  [[nodiscard]] std::string text_of(const Trouble& trouble) const;

  const Profiler* profiler_;
  Episode sink_error_;
  Episode ring_full_;
};

}  // namespace kymo
