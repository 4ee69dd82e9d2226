#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "profiler/kept/store.h"

// What `kymo profiles` and kymod's page share: reading the profiles that are kept.
namespace kymo::profiles {

// The subfolder of the folder of the profiles. The page can compare profiles with the files in it.
inline constexpr const char* kFilesFolder = "files";

// Opens the profiles in a folder, only to read them.
// Errors: not_found: none are kept there; permission_denied: only root and the user who runs kymod
//         may read them; those of SqliteStore::open().
Result<std::unique_ptr<Store>> open_kept(const std::string& directory);

// Keeps of a stack profile from elsewhere what can be compared with a service: of a dump or
// restore, the target's stacks for a job or container, and those of its processes for a process.
// All other profiles are compared as they are.
// Errors: not_found: nothing is left. `name`: that of the profile.
Result<void> keep_comparable(stacks::NamedProfile& profile, const std::optional<Service>& service,
                             const std::string& name);

// A part of a range.
struct Step {
  stacks::Weight weight;
  std::uint64_t covered_ns = 0;  // how long samples were taken; 0: it is a gap
};

// A range in steps of equal length. The last one may be shorter.
struct Steps {
  std::int64_t minutes = 1;  // of each step
  std::vector<Step> steps;
};

// Divides the minutes of a range into at most `most` steps. `most` is at least 1.
Steps steps_of(const Range& range, std::int64_t most, const std::vector<MinuteTotal>& totals,
               const std::vector<CoveredMinute>& covered);

// The range with which `shown` is compared: as long a one, that begins with the minute `begin` or, without it, ends where
// `shown` begins. A minute that both touch belongs to `shown`. Nothing if it begins inside of `shown`.
std::optional<Range> compared_range(const Range& shown, std::optional<std::int64_t> begin);

}  // namespace kymo::profiles
