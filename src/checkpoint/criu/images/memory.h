#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/criu/images/image_set.h"
#include "kymo/result.h"

namespace kymo::criu {

// The kind of a mapping that processes share (its status, criu/include/image.h).
inline constexpr std::uint32_t kAnonymousShared = 1U << 8U;

// What a pagemap says of a run of pages.
enum class PageState : std::uint8_t {
  present,    // in this checkpoint's images
  in_parent,  // unchanged since the parent image, which has them
  lazy,       // present, and may be fetched after the restore
  hole,       // in no image: zero, or as in the mapped file
};

// A run of pages as a pagemap lists it.
struct PageRun {
  std::uint64_t address = 0;
  std::uint64_t pages = 0;
  PageState state = PageState::present;
};

// The number of pages of one mapping, or of a whole process, by state.
struct PageCounts {
  std::uint64_t present = 0;  // lazy ones included
  std::uint64_t in_parent = 0;
  std::uint64_t lazy = 0;

  void add(PageState state, std::uint64_t pages);
};

// One of a process's mappings with pages in the checkpoint.
struct MappingPages {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::string name;  // the mapped file, or [heap], [stack], [vdso], [anonymous], [shared ID]
  PageCounts pages;
};

struct ProcessPages {
  pid_t pid = 0;
  std::string command;  // empty if its core image is missing
  PageCounts pages;
  std::vector<MappingPages> mappings;  // the largest first
};

// A shared memory segment. It is dumped once for all processes that map it.
struct SharedPages {
  std::uint64_t id = 0;
  PageCounts pages;
};

struct CheckpointPages {
  std::vector<ProcessPages> processes;  // the largest first
  std::vector<SharedPages> shared;      // the largest first
  PageCounts pages;                     // of all
  std::vector<std::string> notes;       // images that could not be read, a line each
};

inline constexpr std::uint64_t kPageBytes = 4096;  // of x86-64

// Finds out which processes, and which of their mappings, made the images big: it counts the pages
// of every pagemap for the mappings of its process. A missing or damaged image gives a note and not
// an error.
// Cost: a pass over the pagemaps.
CheckpointPages read_pages(const ImageSet& images);

// The runs of a pagemap image.
// Errors: those of image_messages(); data_loss also if runs overlap or go beyond the address space.
Result<std::vector<PageRun>> parse_pagemap(std::span<const std::byte> image, std::string_view name);

// The number N of the image pages-N.img that has the pages of a pagemap image.
// Errors: those of image_messages().
Result<std::uint32_t> parse_pages_id(std::span<const std::byte> image, std::string_view name);

// The mappings of a memory map image, ordered by address. The name of a mapped file is still
// [file ID], because another image has the names of the files.
// Errors: those of image_messages().
Result<std::vector<MappingPages>> parse_mappings(std::span<const std::byte> image,
                                                 std::string_view name);

}  // namespace kymo::criu
