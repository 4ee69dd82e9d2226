#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "criu/checksums.h"
#include "criu/contents.h"
#include "criu/image_set.h"
#include "criu/verify.h"
#include "kymo/result.h"
#include "runtime/restore_checks.h"

namespace kymo::report {

// A checkpoint, and whether it is whole.
struct VerifiedCheckpoint {
  criu::ImageSet images;
  criu::Contents contents{};  // of the compressed files; empty if only the structure was verified
  criu::Verified verified{};
  Result<criu::Compared> compared = criu::Compared();  // not_found if there are no checksums
  std::vector<std::string> faults{};                   // all of them, one line each
};

// Which parts are verified.
enum class Depth : std::uint8_t {
  structure,  // CRIU's images belong together and are complete
  contents,  // the same, compressed files are decompressed, and files are compared with their checksums
};

// Verifies CRIU's images, and checkpoint.json if there is one. Reads what anybody may have written:
// call it in a confined process (confine/run.h).
// Errors: those of criu::ImageSet::open().
// Cost:   a pass over the small images, or with `contents` over all files.
Result<VerifiedCheckpoint> verify_checkpoint(const std::string& path, Depth depth);

// What a restore of the checkpoint needs. Call it in a confined process as well.
// Errors: those of criu::ImageSet::open().
Result<runtime::PlannedRestore> planned_restore(const std::string& path);

}  // namespace kymo::report
