#pragma once

#include <cstdint>
#include <string>

#include "api/kymo/v1/kymo.pb.h"
#include "daemon/request/restore_context.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The id of the store's newest checkpoint in this directory; empty if there is none.
std::string checkpoint_in(store::Store& store, const std::string& directory);

// Whether the history has a restore after this dump, of the same job or of the same images. So the time since the dump is
// not the time away.
// Errors: those of Store::runs().
Result<bool> ran_since_dump(const RestoreContext& c);

// The size of the images by the record of the checkpoint; 0: not known.
std::uint64_t image_bytes_of(const RestoreContext& c);

// For Request::explain().
diagnosis::Facts facts_of(const RestoreContext& c, const Result<void>& result);
std::string images_of(const RestoreContext& c);

// Saves how the restore ended in the history and the recording. Errors become warnings of the request.
void conclude(RestoreContext& c, const Result<void>& result);

v1::RestoreResponse response_of(const RestoreContext& c);

}  // namespace kymo::daemon
