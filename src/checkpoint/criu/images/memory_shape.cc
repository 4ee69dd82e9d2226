#include "checkpoint/criu/images/memory_shape.h"

#include <span>
#include <string>
#include <string_view>

#include "checkpoint/criu/images/images.h"
#include "checkpoint/criu/images/images.pb.h"
#include "checkpoint/criu/images/memory.h"

namespace kymo::criu {
namespace {

constexpr std::string_view kMappingsName = "mm-";
constexpr std::string_view kPagemapName = "pagemap-";
constexpr std::string_view kSharedName = "pagemap-shmem-";
constexpr std::string_view kFilesName = "files.img";
constexpr std::string_view kThreadName = "core-";  // an image for each thread

bool add_mappings(const ImageSet& images, const std::string& name, MemoryShape& shape) {
  const auto bytes = images.read(name);
  if (!bytes) return false;
  const auto mappings = parse_mappings(*bytes, name);
  if (!mappings) return false;
  ++shape.processes;
  shape.mappings += mappings->size();
  return true;
}

bool add_runs(const ImageSet& images, const std::string& name, MemoryShape& shape) {
  const auto bytes = images.read(name);
  if (!bytes) return false;
  const auto runs = parse_pagemap(*bytes, name);
  if (!runs) return false;
  for (const PageRun& run : *runs) {
    if (run.state != PageState::present && run.state != PageState::lazy) continue;
    ++shape.runs;
    shape.pages += run.pages;
  }
  return true;
}

// Of the types of CRIU's images/fdinfo.proto.
bool is_socket(std::uint32_t type) {
  constexpr std::uint32_t kInternet = 4;
  constexpr std::uint32_t kUnix = 5;
  constexpr std::uint32_t kPacket = 10;
  constexpr std::uint32_t kNetlink = 13;
  return type == kInternet || type == kUnix || type == kPacket || type == kNetlink;
}

// Leaves the numbers at 0 if the list cannot be read.
void add_files(const ImageSet& images, MemoryShape& shape) {
  const auto bytes = images.read(std::string(kFilesName));
  if (!bytes) return;
  const auto messages = image_messages(*bytes, kFilesImage, kFilesName);
  if (!messages) return;
  shape.files = messages->size();
  for (const std::span<const std::byte> message : *messages) {
    wire::FileEntry entry;
    if (parse_message(message, entry) && is_socket(entry.type())) ++shape.sockets;
  }
}

}  // namespace

std::optional<MemoryShape> memory_shape(const ImageSet& images) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20U;
  MemoryShape shape;
  std::uint64_t bytes = 0;
  for (const std::string& name : images.names()) {
    if (name.starts_with(kThreadName)) ++shape.threads;
    if (name.starts_with(kSharedName)) ++shape.shared;
    const bool mappings = name.starts_with(kMappingsName);
    if (!mappings && !name.starts_with(kPagemapName)) continue;
    bytes += images.size(name);
    if (bytes > kMaxBytes) return std::nullopt;
    const bool read = mappings ? add_mappings(images, name, shape) : add_runs(images, name, shape);
    if (!read) return std::nullopt;
  }
  const std::uint64_t listed = images.size(std::string(kFilesName));
  if (listed != 0 && bytes + listed <= kMaxBytes) add_files(images, shape);
  return shape.processes == 0 ? std::nullopt : std::optional(shape);
}

}  // namespace kymo::criu
