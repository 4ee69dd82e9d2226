#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "confine/helper.h"
#include "criu/pstree.h"
#include "http/head.h"
#include "kymo/result.h"

namespace kymo::daemon {

// What a helper of kymod's can read, for confine::Helper::start().
confine::Works foreign_works();

// What a look at the images of a checkpoint finds.
struct ImagesSeen {
  std::vector<criu::ImageProcess> tree;  // the root first
  std::vector<std::string> faults;       // as of criu::Verified and criu::Compared
};

// Reads images, recordings and requests that others may have made: each in a process without
// rights, so that what is made to take over its reader gains nothing, and learns nothing of other
// requests.
//
// Threads: every member from any thread. Ownership: refers to the helper. Errors: those of the
// reader, and of Helper::ask().
class ForeignFiles {
 public:
  explicit ForeignFiles(const confine::Helper& helper) : helper_(helper) {}

  // Verifies images, and compares them with their checksums where there are any.
  [[nodiscard]] Result<ImagesSeen> look_at_images(const std::string& images_dir,
                                                  const Cancellation* cancel) const;
  // What a recording says of itself: state, about and marks.
  [[nodiscard]] Result<nlohmann::json> recording(const std::string& path) const;
  // As report::json_of() of a checkpoint's statistics, and of two checkpoints compared.
  [[nodiscard]] Result<nlohmann::json> statistics(const std::string& directory) const;
  struct Named {
    std::string directory;
    std::string name;
  };
  [[nodiscard]] Result<nlohmann::json> comparison(const Named& before, const Named& after) const;
  // The head of a request over HTTP.
  [[nodiscard]] Result<http::Head> head(const std::string& request) const;
  // The page of a recording, its scripts with this nonce.
  [[nodiscard]] Result<std::string> page(const std::string& recording,
                                         const std::string& nonce) const;

 private:
  const confine::Helper& helper_;
};

}  // namespace kymo::daemon
