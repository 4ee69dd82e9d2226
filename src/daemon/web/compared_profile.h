#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/http/server.h"
#include "daemon/request/parts.h"
#include "profiler/kept/store.h"
#include "profiler/stacks/named_profile.h"

namespace kymo::daemon {

// Profiles with which the page can compare kept stacks, besides another range of time: stack
// profiles of dumps and restores, and files in the folder profiles::kFilesFolder. A request names
// one as others_json() lists it, and never by a path. A process without rights opens and reads it.
//
// Threads: any.

struct ComparedProfile {
  std::string name;
  stacks::NamedProfile profile;
};

// The profile that the request names. Nothing if it names none.
// Errors: invalid_argument: the name is not valid; not_found: there is no such profile, or nothing
//         in it belongs to the service; those of ForeignFiles::stacks().
Result<std::optional<ComparedProfile>> compared_profile(const Parts& parts,
                                                        const http::Request& request,
                                                        const profiles::Query& query);

// Where others_json() looks for such profiles. It uses nothing of the daemon, so that a disk that
// stalls delays only its own thread.
struct OtherPlaces {
  struct Checkpoint {
    std::string id;
    std::string job;
    std::int64_t created_unix_ns = 0;
    std::string recordings;  // a folder
  };
  std::vector<Checkpoint> checkpoints;  // the newest first, at most kMaxOthersListed
  std::string files;                    // a folder
};
OtherPlaces other_places(const Parts& parts);
nlohmann::ordered_json others_json(const OtherPlaces& places);

}  // namespace kymo::daemon
