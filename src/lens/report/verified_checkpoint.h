#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/criu/images/contents.h"
#include "checkpoint/criu/images/image_set.h"
#include "checkpoint/criu/images/verify.h"
#include "checkpoint/runtimes/shared/restore_checks.h"
#include "kymo/result.h"

namespace kymo::report {

// A checkpoint, and whether it is whole.
struct VerifiedCheckpoint {
  criu::ImageSet images;
  criu::Contents contents{};  // of the compressed files; empty if they were not decompressed
  criu::Verified verified{};
  std::vector<std::string> faults{};  // all of them, one line each
};

// Which parts are verified, beside all that verify_images() looks at.
enum class Depth : std::uint8_t {
  small,     // the small images are compared with their checksums
  sums,      // all images that have one in the list are
  contents,  // the same, and compressed files are decompressed
};

// Verifies CRIU's images by the list of their dump, and checkpoint.json if there is one. Reads what anybody may have
// written: call it in a confined process (confine/run.h).
//
// `path`: of a checkpoint, of its folder of images, of images that another tool made, or of an archive. The list of an
// archive is not read.
// Errors: those of criu::ImageSet::open() and criu::verify_images().
// Cost:   a pass over the small images, or over all files.
Result<VerifiedCheckpoint> verify_checkpoint(const std::string& path, Depth depth);

// What a restore of its images needs. Call it in a confined process as well.
// Cost: a pass over the images of files.
runtime::PlannedRestore planned_restore(const VerifiedCheckpoint& seen);
// Adds what the record of the dump (checkpoint.json) says, which anybody may have written.
void add_record(runtime::PlannedRestore& planned, const nlohmann::json& record);

}  // namespace kymo::report
