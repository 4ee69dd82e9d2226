#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/request/parts.h"
#include "http/server.h"
#include "profiles/store.h"
#include "stacks/named_profile.h"

namespace kymo::daemon {

// With what the page can compare kept stacks beside another range: stack profiles of dumps and restores, and files in the
// folder profiles::kFilesFolder. A request names them by what others_json() lists, and never by a path. A reader without
// rights opens and reads them.
//
// Threads: any.

struct ComparedProfile {
  std::string name;
  stacks::NamedProfile profile;
};

// What the request names; nothing: it names none.
// Errors: invalid_argument: the name is none; not_found: it is not there, or nothing of it belongs to the service; those of
//         ForeignFiles::stacks().
Result<std::optional<ComparedProfile>> compared_profile(const Parts& parts,
                                                        const http::Request& request,
                                                        const profiles::Query& query);

// Where that is looked for which can be named. A disk that stalls holds up only others_json(), which needs nothing of the
// daemon.
struct OtherPlaces {
  struct Checkpoint {
    std::string id;
    std::string job;
    std::int64_t created_unix_ns = 0;
    std::string recordings;  // a folder
  };
  std::vector<Checkpoint> checkpoints;  // the newest first, at most kMaxOthers
  std::string files;                    // a folder
};
OtherPlaces other_places(const Parts& parts);
nlohmann::ordered_json others_json(const OtherPlaces& places);

}  // namespace kymo::daemon
