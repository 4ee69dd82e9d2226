#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/criu/drive/held_images.h"
#include "kymo/result.h"

namespace kymo::runtime {

// runc, podman, containerd and Docker start CRIU themselves, so its images cannot pass through kymod.
// If CRIU writes them to a disk that stalls, CRIU waits there, cannot be killed, and holds the container
// as long. So it can write them into a directory on a memory file system. kymod copies them to their
// disk when CRIU has ended.
//
// As with images on a disk, inventory.img is the last file that is written, and the first that is
// removed. So if it is there, the images in memory are whole.
//
// Threads: any, one for each directory.

// Chooses the directory in memory for a dump with this name, which is not made. Memory, its file system
// and, if it says so within kDiskPatience, the disk of `images_dir` must have room for `bytes`.
// Errors: resource_exhausted: what has no room.
Result<std::string> choose_memory_images(const std::string& name, std::uint64_t bytes,
                                         const std::string& images_dir);

// The directory in memory that a dump with this name has left. Empty if there is none. It depends only
// on the name and on this machine, so a later kymod finds what a kymod that was killed has left.
std::string find_memory_images(const std::string& name);

// Makes the directory, with mode 0700.
// Errors: permission_denied: the folder above it belongs to another user; the system's.
Result<void> make_memory_images(const std::string& memory);

// Whether the images there are whole.
bool whole_in_memory(const std::string& memory);

// Copies whole images from memory to `images_dir`, which must exist and whose images are replaced,
// and then removes them from memory, if they are all there (HeldImages::check()). `held`: the folder
// `images_dir`, which remembers them; may be null. Does nothing if no whole images are in memory.
// `durable`: first makes them durable on their disk (criu/sync_images.h). A disk that fails only
// when it really writes them would otherwise lose all that is left of a process.
// Errors: what the disk says. The images stay in memory. Waits until the disk answers.
Result<void> bring_images(const std::string& memory, const std::string& images_dir, bool durable,
                          std::shared_ptr<criu::HeldImages> held = nullptr);

// Removes images from memory.
void drop_memory_images(const std::string& memory);

}  // namespace kymo::runtime
