#include <algorithm>
#include <initializer_list>

#include "checkpoint/criu/drive/phases.h"
#include "checkpoint/criu/drive/stats.h"
#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/memory.h"
#include "checkpoint/criu/images/pstree.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

using Image = std::vector<std::byte>;

void append_word(std::uint32_t word, Image& image) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    image.push_back(static_cast<std::byte>(word >> shift & 0xffU));
  }
}

// Puts the header that most inputs lack before the bytes.
Image behind_head(const criu::ImageKind& kind, Bytes data) {
  Image image;
  append_word(kind.family, image);
  append_word(kind.magic, image);
  append_word(static_cast<std::uint32_t>(data.size()), image);
  for (const std::uint8_t byte : data) {
    image.push_back(static_cast<std::byte>(byte));
  }
  return image;
}

void read_image(std::span<const std::byte> image) {
  const auto dump = criu::parse_dump_stats(image, "fuzz");
  const auto restore = criu::parse_restore_stats(image, "fuzz");
  const auto tree = criu::parse_pstree(image, "fuzz");
  require((dump.ok() || !dump.error().message.empty()) &&
              (restore.ok() || !restore.error().message.empty()) &&
              (tree.ok() || !tree.error().message.empty()),
          "an error says something");
  require(!tree.ok() || (!dump.ok() && !restore.ok()), "an image is of one kind");
  if (!tree) {
    return;
  }
  require(!tree->empty(), "a tree has a root");
  for (const criu::ImageProcess& process : *tree) {
    require(process.pid > 0, "a process has a number");
    for (const pid_t thread : process.threads) {
      require(thread > 0, "a thread has a number");
    }
  }
}

void read_memory(std::span<const std::byte> image) {
  const auto runs = criu::parse_pagemap(image, "fuzz");
  const auto mappings = criu::parse_mappings(image, "fuzz");
  require((runs.ok() || !runs.error().message.empty()) &&
              (mappings.ok() || !mappings.error().message.empty()),
          "an error says something");
  std::uint64_t free_from = 0;
  for (const criu::PageRun& run : runs ? *runs : std::vector<criu::PageRun>()) {
    require(run.address >= free_from, "runs are in order and apart");
    free_from = run.address + run.pages * criu::kPageBytes;
    require(free_from >= run.address, "a run ends within the address space");
  }
  for (const criu::MappingPages& mapping :
       mappings ? *mappings : std::vector<criu::MappingPages>()) {
    require(mapping.start < mapping.end && !mapping.name.empty(), "a mapping is somewhere");
  }
}

void read_log(const std::string& log) {
  for (const criu::LogPhases& all :
       {criu::dump_phases(log, criu::DumpStats()), criu::restore_phases(log, {})}) {
    std::uint64_t sum = 0;
    for (const criu::LogPhase& phase : all.phases) {
      sum += phase.duration_us;
    }
    require(all.phases.empty() || sum == all.total_us, "phases add up");
  }
}

}  // namespace

void criu(Bytes data) {
  read_image(std::as_bytes(data));
  read_memory(std::as_bytes(data));
  read_log(text_of(data));
  for (const criu::ImageKind& kind : {criu::kStatsImage, criu::kPstreeImage}) {
    read_image(behind_head(kind, data));
  }
  for (const criu::ImageKind& kind : {criu::kPagemapImage, criu::kMmImage}) {
    read_memory(behind_head(kind, data));
  }
}

}  // namespace kymo::fuzz
