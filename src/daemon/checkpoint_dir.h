#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kymo/result.h"

namespace kymo::daemon {

// Where the parts of a checkpoint lie. Images are made in images.partial and published by a rename,
// so that images under their own name are whole.
class CheckpointDir {
 public:
  explicit CheckpointDir(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string images() const { return path_ + "/images"; }
  [[nodiscard]] std::string partial_images() const { return path_ + "/images.partial"; }
  // What the images are called while they are removed.
  [[nodiscard]] std::string deleted_images() const { return path_ + "/images.deleted"; }
  [[nodiscard]] std::string work() const { return path_ + "/work"; }
  [[nodiscard]] std::string recordings() const { return path_ + "/recordings"; }
  [[nodiscard]] std::string record() const { return path_ + "/checkpoint.json"; }
  // The next free recordings/NAME.tsv, NAME-2.tsv, ...
  [[nodiscard]] std::string next_recording(const std::string& name) const;

 private:
  std::string path_;
};

// The highest N of which there is a NAME-N in the folder; 0: none.
int highest_number(const std::string& folder, const std::string& name);

// Makes the directory (it must not exist, or be empty) and the folders in it, all of mode 0700.
Result<void> create_checkpoint_dir(const CheckpointDir& dir);
// Gives whole images their name.
Result<void> publish_images(const CheckpointDir& dir);
// Removes what a failed dump wrote.
void discard_images(const CheckpointDir& dir);

// Writes checkpoint.json whole; `format_version` is added.
Result<void> write_record(const CheckpointDir& dir, nlohmann::json record);
// Reads checkpoint.json, as report::read_checkpoint_record() does.
Result<nlohmann::json> read_record(const CheckpointDir& dir);

}  // namespace kymo::daemon
