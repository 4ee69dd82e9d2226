#include "criu/memory_shape.h"

#include <string>
#include <string_view>

#include "criu/memory.h"

namespace kymo::criu {
namespace {

constexpr std::string_view kMappingsName = "mm-";
constexpr std::string_view kPagemapName = "pagemap-";

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

}  // namespace

std::optional<MemoryShape> memory_shape(const ImageSet& images) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20U;
  MemoryShape shape;
  std::uint64_t bytes = 0;
  for (const std::string& name : images.names()) {
    const bool mappings = name.starts_with(kMappingsName);
    if (!mappings && !name.starts_with(kPagemapName)) continue;
    bytes += images.size(name);
    if (bytes > kMaxBytes) return std::nullopt;
    const bool read = mappings ? add_mappings(images, name, shape) : add_runs(images, name, shape);
    if (!read) return std::nullopt;
  }
  return shape.processes == 0 ? std::nullopt : std::optional(shape);
}

}  // namespace kymo::criu
