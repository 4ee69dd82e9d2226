#include "profiler/stacks/elf_layout.h"

#include <iterator>
#include <utility>

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxRows = 100'000;  // of a file; about 50 MB

}  // namespace

ElfLayout::ElfLayout(std::shared_ptr<ElfReader> reader, int fd) : reader_(std::move(reader)) {
  static std::uint64_t last_id = 0;
  file_.id = ++last_id;
  file_.fd = fd;
}

ElfLayout::~ElfLayout() {
  reader_->forget(file_);
}

std::unique_ptr<ElfLayout> ElfLayout::read(std::shared_ptr<ElfReader> reader, int fd) {
  std::unique_ptr<ElfLayout> layout(new ElfLayout(std::move(reader), fd));
  std::optional<std::vector<Segment>> segments = layout->reader_->open(layout->file_);
  if (!segments) return nullptr;
  layout->segments_ = *std::move(segments);
  return layout;
}

std::optional<std::uint64_t> ElfLayout::address_at(std::uint64_t offset) const {
  for (const Segment& segment : segments_) {
    if (offset >= segment.offset && offset - segment.offset < segment.size) {
      return offset - segment.offset + segment.address;
    }
  }
  return std::nullopt;
}

const FrameRow* ElfLayout::row_at(std::uint64_t address) {
  const auto after = rows_.upper_bound(address);
  if (after != rows_.begin()) {
    const auto& [begin, row] = *std::prev(after);
    if (row ? address < row->end : address == begin) return row ? &*row : nullptr;
  }
  if (refused_) return nullptr;
  std::optional<FrameRow> row = reader_->row_at(file_, address);
  if (reader_->pid() == 0) {
    refused_ = true;
    return nullptr;
  }
  if (rows_.size() >= kMaxRows) rows_.clear();
  std::optional<FrameRow>& kept = rows_[row ? row->begin : address];
  kept = std::move(row);
  return kept ? &*kept : nullptr;
}

}  // namespace kymo::stacks
