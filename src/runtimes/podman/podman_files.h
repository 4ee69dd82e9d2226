#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "kymo/result.h"

// The files and folders of podman that kymod moves, copies and replaces by links.
namespace kymo::runtime {

// While it exists, the folder or file `path`, where podman expects a checkpoint or CRIU's log, is a link
// to `target`. An older one at `path` is moved aside and put back later, because podman needs it to
// restore a checkpoint of its own.
class CheckpointLink {
 public:
  CheckpointLink(const std::string& path, const std::string& target)
      : path_(path), aside_(path + kAside) {
    if (std::filesystem::is_symlink(path_, error_)) {  // left by a kymod that was killed
      std::filesystem::remove(path_, error_);
    } else if (std::filesystem::exists(path_, error_)) {
      std::filesystem::rename(path_, aside_, error_);
    }
    std::filesystem::create_symlink(target, path_, error_);
  }
  ~CheckpointLink() { put_back(path_, aside_); }
  CheckpointLink(const CheckpointLink&) = delete;
  CheckpointLink& operator=(const CheckpointLink&) = delete;

  [[nodiscard]] Result<void> made() const {
    return error_ ? Result<void>(system_error("make " + path_, error_.value())) : Result<void>();
  }

  // Puts podman's folder or file back after a kymod was killed, if the link leads to this target.
  static void undo(const std::string& path, const std::string& target) {
    std::error_code error;
    if (std::filesystem::read_symlink(path, error) == target) {
      put_back(path, path + kAside);
    }
  }

 private:
  static constexpr char kAside[] = ".kymo-aside";
  static void put_back(const std::string& path, const std::string& aside) {
    std::error_code error;
    if (std::filesystem::is_symlink(path, error)) {
      std::filesystem::remove(path, error);
    }
    if (std::filesystem::exists(aside, error)) {
      std::filesystem::rename(aside, path, error);
    }
  }

  std::string path_;
  std::string aside_;
  std::error_code error_;
};

// podman has one folder for a round of pre-dump, next to its folder for checkpoints, and CRIU looks
// for the round next to the images. While this object exists, two links lead to the folder of the
// round: one in podman's folder, and one next to our images.
class PreCheckpointLinks {
 public:
  PreCheckpointLinks(const std::string& userdata, const std::string& images_dir)
      : images_dir_(images_dir),
        podmans_(userdata + kPreCheckpoint, round_of(images_dir)),
        ours_(pre_checkpoint_beside(images_dir), round_of(images_dir)) {}

  [[nodiscard]] Result<void> made() const {
    const Result<void> podmans = podmans_.made();
    return podmans ? ours_.made() : podmans;
  }
  // Changes the link to the parent images, so that it leads to the round inside our images.
  [[nodiscard]] Result<void> link_images_to_round() const {
    const std::string parent = images_dir_ + "/parent";
    std::error_code error;
    std::filesystem::remove(parent, error);
    std::filesystem::create_directory_symlink(
        std::filesystem::path(round_of(images_dir_)).filename(), parent, error);
    return error ? Result<void>(system_error("make " + parent, error.value())) : Result<void>();
  }
  static void undo(const std::string& userdata, const std::string& images_dir) {
    CheckpointLink::undo(userdata + kPreCheckpoint, round_of(images_dir));
    CheckpointLink::undo(pre_checkpoint_beside(images_dir), round_of(images_dir));
  }

 private:
  static constexpr char kPreCheckpoint[] = "/pre-checkpoint";
  static std::string round_of(const std::string& images_dir) { return images_dir + "/pre-1"; }
  static std::string pre_checkpoint_beside(const std::string& images_dir) {
    return std::filesystem::path(images_dir).parent_path().string() + kPreCheckpoint;
  }

  std::string images_dir_;
  CheckpointLink podmans_;
  CheckpointLink ours_;
};

// Moves a file, which may be missing. Returns false if it is still there, for example because there is no room. Then
// nothing of it is at `to`.
bool move_file(const std::string& from, const std::string& to);

// Reads a file, which may be missing, to its end. Returns false if the disk does not answer, or gives less than 4 MiB a
// second: another program would wait for it.
bool disk_answers_for(const std::string& path);

}  // namespace kymo::runtime
