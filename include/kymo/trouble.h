#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kymo/export.h"
#include "kymo/profiler.h"

namespace kymo {

// The begin or the end of an episode in which a recorder could not keep its rows; or rows that it
// had kept, and that somebody else has taken away (sink_error, never over).
struct Trouble {
  MissCause cause = MissCause::sink_error;  // or ring_full: the sink is too slow or blocked
  bool over = false;
  std::uint64_t ticks = 0;  // lost since the episode began
  std::string text;         // one line for a person
};

// Reports once that a recorder has begun to lose rows because of its sink, and once that this is
// over, however often the sink fails in between. Also reports once each time that somebody has
// removed or cut off the file. Call look() about once a second, from any thread
// except the sink's: a sink that is blocked cannot report itself.
//
// Threads:   one at a time.
// Ownership: refers to the profiler.
// Cost:      one Profiler::stats() for each look().
class KYMO_API TroubleWatch {
 public:
  // An episode is over when nothing was lost for this time.
  static constexpr std::uint64_t kQuietNs = 3'000'000'000;

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
  void look_at(MissCause cause, std::uint64_t missed, Episode& episode, std::vector<Trouble>* news);
  [[nodiscard]] std::string text_of(const Trouble& trouble) const;

  const Profiler* profiler_;
  Episode sink_error_;
  Episode ring_full_;
  LostRows told_;  // the rows that were taken away, at the last report
};

}  // namespace kymo
