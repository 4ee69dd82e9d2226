#pragma once

#include <string>

#include "kymo/result.h"
#include "runtime/command.h"

namespace kymo::runtime {

// Docker makes the folder for the images itself, so it is one inside the images directory.
inline constexpr char kDockersFolder[] = "docker";
// Its name after the dump was ended.
inline constexpr char kEndedFolder[] = "docker-ended";

// Moves the images from the folder that Docker has made into the images directory. The last one is inventory.img: without
// it no reader takes the other files for a checkpoint. This happens on a thread of its own, because the disk may stall. If
// the request is cancelled meanwhile, this returns at once, and the images do not become whole.
// Errors: cancelled; Docker has made no images; those of the disk.
Result<void> take_images(const std::string& images_dir, const Command& limits);

// For a container that has ended without kymod. Does the same with what Docker has unpacked after kymod was killed, which may
// not be whole. Waits at most kDiskPatience. Returns false if there is no inventory.img, so that nothing is worth keeping.
bool keep_images(const std::string& images_dir);

// Removes both folders. Waits at most kDiskPatience. If the disk stalls, the folders go when it answers.
void remove_folders(const std::string& images_dir);

}  // namespace kymo::runtime
