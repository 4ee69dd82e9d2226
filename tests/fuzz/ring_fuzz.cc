#include <algorithm>

#include "input_file.h"
#include "recorder/programs/live.h"
#include "recorder/sampling/ring/ring_memory.h"
#include "recorder/sampling/ring/ring_reader.h"
#include "ring_bytes.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

constexpr std::size_t kPeeked = 10;

void read_ring_rows(const RingMemory& memory) {
  const std::size_t stride = memory.header().stride;
  const std::vector<std::uint64_t> newest = peek_rows(memory, kPeeked);
  require(newest.size() % stride == 0 && newest.size() <= kPeeked * stride,
          "as many rows as were asked for at most");
  std::uint64_t last = 0;
  std::uint64_t sum = 0;
  const auto left = left_rows(memory, "ring");
  require(left.ok() || !left.error().message.empty(), "an error says something");
  for (const LeftSlot& slot : left ? left->slots : std::vector<LeftSlot>()) {
    require(slot.sequence >= last, "slots are in the order of their rows");
    last = slot.sequence;
    require(slot.rows.count != 0 && slot.rows.count <= memory.header().rows_per_slot,
            "a slot has its rows at most");
    for (std::size_t row = 0; row < slot.rows.count; ++row) {
      for (std::size_t i = 0; i < stride; ++i) {
        sum += slot.rows.row(row)[i];
      }
    }
  }
  asm volatile("" : : "r"(sum));  // keeps the compiler from leaving out the reads
}

void read_ring(const std::string& path) {
  const auto memory = RingMemory::open_file(path);
  if (!memory) {
    require(!memory.error().message.empty(), "an error says something");
    return;
  }
  read_ring_rows(**memory);
  const auto live = record::watch_ring(path);
  if (!live) {
    require(!live.error().message.empty(), "an error says something");
    return;
  }
  require((*live)->read().ok(), "a ring that is there can be watched");
}

}  // namespace

void ring(Bytes data) {
  static InputFile file;
  file.write(text_of(data));
  read_ring(file.path());
  file.write(mend_ring(data).ring);
  read_ring(file.path());
}

}  // namespace kymo::fuzz
