#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "checkpoint/criu/drive/held_images.h"
#include "kymo/result.h"

namespace kymo::daemon {

// The paths in the directory of a checkpoint. A dump writes its images to images.partial, and kymod
// renames that to images at the end. So a folder named images is always complete.
class CheckpointDir {
 public:
  explicit CheckpointDir(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string images() const { return path_ + "/images"; }
  [[nodiscard]] std::string partial_images() const { return path_ + "/images.partial"; }
  // The name of the images while kymod deletes them.
  [[nodiscard]] std::string deleted_images() const { return path_ + "/images.deleted"; }
  [[nodiscard]] std::string work() const { return path_ + "/work"; }
  [[nodiscard]] std::string recordings() const { return path_ + "/recordings"; }
  [[nodiscard]] std::string record() const { return path_ + "/checkpoint.json"; }
  // The first of recordings/NAME.tsv, NAME-2.tsv, ... that does not exist, and has no stack profile.
  [[nodiscard]] std::string next_recording(const std::string& name) const;

 private:
  std::string path_;
};

// The stack profile of the dump or restore that has this recording: NAME.pb.gz beside NAME.tsv.
std::string stack_profile_of(const std::string& recording);
// The same of the threads that waited: NAME.waits.pb.gz.
std::string wait_profile_of(const std::string& recording);

// The number that is the text from `begin` on. 0 if it is none.
int number_after(const std::string& text, std::size_t begin);
// The highest N for which the folder has a NAME-N. 0 if there is none.
int highest_number(const std::string& folder, const std::string& name);

// Makes the directory and the folders in it, all with mode 0700. A directory that exists already
// must be empty.
// Errors: permission_denied: another user could change a folder of the path, or replace it
//         (make_own_folder()); those of the files.
Result<void> create_checkpoint_dir(const CheckpointDir& dir);
// Checks that images, work and recordings, where they exist, are folders and not links. Somebody
// else may have made the checkpoint, with links that lead elsewhere.
// Errors: permission_denied: one is a link.
Result<void> check_no_linked_folders(const CheckpointDir& dir);
// Checks that only this process' user and root can change the images and their parent images
// (check_own_files()). A parent that is missing is no error.
// Errors: permission_denied, which names what another user can change; failed_precondition: there are too
//         many parents; the system's.
Result<void> check_own_images(const std::string& images);
// Gives the files of the images and of the work folder mode 0600, and renames complete images from
// images.partial to images. `held`: the images that this request has written.
// Errors: already_exists: something is there already, even an empty folder; aborted: afterwards
//         `images` is another folder than `held`; the system's.
Result<void> publish_images(const CheckpointDir& dir, const criu::HeldImages* held = nullptr);
// A clause for a message: another program has made something of the name `images`.
std::string is_taken(const CheckpointDir& dir);
// Removes the images of a failed dump. Removes nothing if a file system is mounted over them. `held`: the folder that was
// made for them, if its request is still here. Then only images in this one are removed, wherever it is by now; returns
// false if it is not in its place.
bool discard_images(const CheckpointDir& dir, const criu::HeldImages* held = nullptr);
// Removes the empty folders that create_checkpoint_dir() has made, of a dump that was refused before it began. So a
// retry can use the same directory. What is in the folders stays.
void clear_unused(const CheckpointDir& dir);

// Whether the file is known to be missing. False also if its disk does not answer within kDiskPatience.
bool is_gone(const std::string& path);

// Replaces checkpoint.json as a whole, and adds `format_version` to it. ForeignFiles::record()
// reads it. A command that is too long for a record (report::kMaxRecordWithoutImages) is shortened there, and a list of
// images that is too long (report::kMaxRecordBytes) is left out.
Result<void> write_record(const CheckpointDir& dir, nlohmann::json record);
// Makes checkpoint.json, and the names of all that is in the directory, durable, so that a power failure does not lose
// them. Blocks for as long as the disk takes.
Result<void> sync_record(const CheckpointDir& dir);

}  // namespace kymo::daemon
