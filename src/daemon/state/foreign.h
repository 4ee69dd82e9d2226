#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/confine/helper.h"
#include "base/http/head.h"
#include "checkpoint/criu/images/memory_shape.h"
#include "checkpoint/criu/images/pstree.h"
#include "checkpoint/runtimes/shared/restore_checks.h"
#include "daemon/state/checkpoint_dir.h"
#include "kymo/result.h"
#include "profiler/stacks/named_profile.h"

namespace kymo::daemon {

// The functions that kymod's helper process offers, for confine::Helper::start().
confine::WorkByName foreign_readers();

// What was found in the images of a checkpoint.
struct ImagesSeen {
  std::vector<criu::ImageProcess> tree;  // the root first
  std::vector<std::string> unknown;      // that of criu::Verified
  // What their restore needs: report::planned_restore().
  runtime::PlannedRestore planned;
  // Those of all files that were open, also in a mount namespace, whose name a job's output file may have.
  std::vector<std::string> outputs;
};

// Reads images, recordings and HTTP requests that somebody else may have made. Each is read in a
// separate process without rights. If malicious data takes over that process, it gains nothing and
// learns nothing about other requests.
//
// Threads:   every member from any thread.
// Ownership: refers to the helper.
// Errors:    those of the reader and of Helper::ask().
class ForeignFiles {
 public:
  explicit ForeignFiles(const confine::Helper& helper) : helper_(helper) {}

  // Verifies a folder of images with report::verify_checkpoint(), to the depth `sums`.
  [[nodiscard]] Result<ImagesSeen> look_at_images(const std::string& images_dir,
                                                  const Cancellation* cancel) const;
  // Nothing if it cannot be told, or not in two seconds.
  [[nodiscard]] std::optional<criu::MemoryShape> memory_shape(const std::string& images_dir) const;
  // The checkpoint.json of a checkpoint, read by report::read_checkpoint_record(), without the list of images.
  [[nodiscard]] Result<nlohmann::json> record(const CheckpointDir& dir) const;
  // The same with the list, to write it again.
  [[nodiscard]] Result<nlohmann::json> whole_record(const CheckpointDir& dir) const;
  // The entries state, about and marks of a recording's metadata. Empty if it has no metadata.
  [[nodiscard]] Result<nlohmann::json> recording(const std::string& path) const;
  // The statistics of a checkpoint, and the comparison of two, as report::json_of() gives them.
  [[nodiscard]] Result<nlohmann::json> statistics(const std::string& directory) const;
  struct Named {
    std::string directory;
    std::string name;
  };
  [[nodiscard]] Result<nlohmann::json> comparison(const Named& before, const Named& after) const;
  // A stack profile in a folder, read by report::read_stack_file().
  [[nodiscard]] Result<stacks::NamedProfile> stacks(const std::string& folder,
                                                    const std::string& name,
                                                    stacks::Quantity quantity) const;
  // Reads the head of an HTTP request.
  [[nodiscard]] Result<http::Head> head(const std::string& request) const;
  // Makes the HTML page of a recording. Its scripts have this nonce, which the reader does not know:
  // it returns only the data of the page.
  [[nodiscard]] Result<std::string> page(const std::string& recording,
                                         const std::string& nonce) const;

  // For functions that only pass files on (daemon/state/pieces.h).
  [[nodiscard]] const confine::Helper& helper() const { return helper_; }

 private:
  [[nodiscard]] Result<nlohmann::json> read_record(const CheckpointDir& dir, const char* reader,
                                                   std::uint64_t most) const;

  const confine::Helper& helper_;
};

}  // namespace kymo::daemon
