#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"
#include "profiler/kept/service.h"
#include "profiler/stacks/named_profile.h"

// Stack profiles that are kept: of each minute, how often each stack was seen in each service.
namespace kymo::profiles {

// The kinds of profiles: those that kymod takes of the machine, and those that programs of Go make
// themselves. The order is that of the numbers in the store: add at the end.
enum class Type : std::uint8_t {
  cpu,
  off_cpu,
  go_cpu,
  go_heap,
  go_alloc,
  go_goroutine,
  go_block,
  go_mutex,
};

struct TypeFacts {
  Type type;
  const char* name;  // on command lines and in JSON
  stacks::Quantity quantity;
  bool level;  // it is how much there was: of a range, the store has its average, not its sum
};

// In the order of Type.
std::span<const TypeFacts> all_types();
const TypeFacts& facts_of(Type type);
inline const char* name_of(Type type) {
  return facts_of(type).name;
}
// For a person: "CPU time", "Go: memory in use".
std::string title_of(Type type);
inline stacks::Quantity quantity_of(Type type) {
  return facts_of(type).quantity;
}
std::optional<Type> type_named(std::string_view name);

inline constexpr std::int64_t kNanosPerMinute = 60'000'000'000;

// Minutes since 1970, `end` not included.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// All minutes that a stretch of time touches.
Range minutes_of(std::int64_t begin_unix_ns, std::int64_t end_unix_ns);

// What was taken in one minute.
struct Minute {
  std::int64_t minute = 0;
  Type type = Type::cpu;
  std::int64_t begin_unix_ns =
      0;  // when the first of it was taken; two parts of a minute differ in it
  stacks::NamedProfile profile;  // its stacks have services (text_of())
};

struct ServiceTotal {
  Service service;
  Type type = Type::cpu;
  stacks::Weight weight;
};

struct MinuteTotal {
  std::int64_t minute = 0;
  stacks::Weight weight;
};

// A minute in which samples were taken, and for how long.
struct CoveredMinute {
  std::int64_t minute = 0;
  std::uint64_t covered_ns = 0;
};

// What is asked for.
struct Query {
  Type type = Type::cpu;
  std::optional<Service> service;  // nothing: all
  Range range;
  // Of the stacks and names in an answer; 0: no limit. Beyond it, the stacks with the smallest weights
  // are one stack of the process kRareStacks.
  std::uint64_t most_bytes = 0;
};

inline constexpr const char* kRareStacks = "[rarer stacks]";

struct Extent {
  std::int64_t oldest = 0;  // the first and the last minute that are kept; both 0: none are
  std::int64_t newest = 0;
  std::uint64_t minutes = 0;
  std::uint64_t stacks = 0;  // different ones
  std::uint64_t rows = 0;    // a row is one stack of one service in one minute
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  // on disk, without a journal
};

// The oldest minutes beyond these are removed. A minute is as old as the number of minutes that were taken after
// it. The clock of the machine does not count: it may be set at any time, and by years.
struct Limits {
  std::int64_t minutes = 0;  // age; 0: no limit
  std::uint64_t bytes = 0;   // 0: no limit
};

// What was removed because of the limits.
struct Removed {
  std::uint64_t too_old = 0;   // minutes beyond Limits::minutes
  std::uint64_t too_many = 0;  // minutes beyond Limits::bytes
  std::int64_t oldest = 0;     // the first and the last of these minutes, by the clock of that time
  std::int64_t newest = 0;

  [[nodiscard]] std::uint64_t minutes() const { return too_old + too_many; }
  void add(const Removed& other);
  bool operator==(const Removed&) const = default;
};

// Where profiles are kept.
//
// Threads: one at a time.
// Errors:  those of the engine: unavailable: another process changes it; resource_exhausted: its disk is
//          full; data_loss: its file is damaged.
class Store {
 public:
  Store() = default;
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Adds a minute as a whole or, with an error, nothing of it. A minute that is there already, because the
  // clock went back, gets more. A part that was added before is known by its beginning and is not added
  // again: its writer may have been killed before it could report that it had written it.
  virtual Result<void> add(const Minute& minute) = 0;
  // Removes minutes that are too old, but of all that are kept at most the sixteenth part, or one. So a
  // limit that was made smaller takes effect in several calls. Then removes the oldest minutes until the
  // rest has room.
  virtual Result<Removed> keep_within(const Limits& limits) = 0;

  // The services that were seen in the range, the hottest first. A level is the average over the minutes in which
  // the service has it.
  virtual Result<std::vector<ServiceTotal>> services(const Range& range) = 0;
  // The minutes in the order of time. A minute in which nothing was seen is missing.
  virtual Result<std::vector<MinuteTotal>> totals(const Query& query) = 0;
  // The minutes in which samples of a type were taken, of whatever service, in the order of time.
  virtual Result<std::vector<CoveredMinute>> covered(Type type, const Range& range) = 0;
  // The sum of all stacks or, of a level, the average as in services(). `lost` is of all services.
  virtual Result<stacks::NamedProfile> profile(const Query& query) = 0;
  virtual Result<Extent> extent() = 0;
};

}  // namespace kymo::profiles
