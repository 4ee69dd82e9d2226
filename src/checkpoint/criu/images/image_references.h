#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/criu/images/image_set.h"
#include "checkpoint/criu/images/pstree.h"

namespace kymo::criu {

// The name of an image, such as "mm-12.img".
std::string numbered(const char* prefix, std::uint64_t number);

// Whether the state of a process in its core image says that it had ended, reaped or not
// (compel/include/uapi/task-state.h).
constexpr bool has_ended(std::uint32_t task_state) {
  constexpr std::uint32_t kDead = 2;
  constexpr std::uint32_t kZombie = 6;
  return task_state == kDead || task_state == kZombie;
}

// What images of which there is no list say of each other.
struct References {
  std::vector<std::string> faults;   // an image is missing that another one names, one line each
  std::vector<std::string> unknown;  // an image may be missing, one line each
};

// Checks whether the images are there that others name: for each process of the tree, unless it had ended, its ids, its
// directories, its table of file descriptors, its program, and its shared memory; the files of all of these, also those
// in memory; the namespaces of the first process; and the filters of system calls.
//
// CRIU takes an image that is missing for an empty one. It writes no empty images: so it is not known whether an image
// is missing that no other one names, and a table of file descriptors may be missing because the process had none open.
//
// Threads: any.
// Cost:    a pass over the small images.
References check_references(const ImageSet& images, const std::vector<ImageProcess>& tree);

}  // namespace kymo::criu
