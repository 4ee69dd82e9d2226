// Leaves the files of a recorder that was killed: a ring with three rows, and a recording that does
// not have them yet. For the tests of the command line.

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "recorder/metrics/metric_rules.h"
#include "recorder/sampling/files/metadata.h"
#include "recorder/sampling/files/recording_files.h"
#include "recorder/sampling/ring/ring.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: leave_ring RING RECORDING.tsv\n", stderr);
    return 2;
  }
  kymo::RecordingInfo info;
  info.columns = kymo::columns_of({"steps", "Steps", kymo::Kind::counter, kymo::Unit::count, {}});
  info.interval = std::chrono::milliseconds(1);
  info.slots = 2;
  info.rows_per_slot = 4;
  auto memory = kymo::RingMemory::create_file({info.slots, info.rows_per_slot, 2}, argv[1],
                                              kymo::describe_ring(info, argv[2]).dump());
  auto files = kymo::RecordingFiles::create(argv[2], info, {});
  if (!memory || !files) {
    std::fputs("leave_ring: cannot create the files\n", stderr);
    return 1;
  }
  kymo::Ring ring(*std::move(memory));
  ring.accept_output({0, files->bytes()});
  kymo::Ring::Slot slot;
  if (!ring.try_take_free(&slot)) {
    return 1;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const std::array<std::uint64_t, 2> row{i * 1'000'000, i};
    ring.put_row(slot, i, row.data());
  }
  return 0;
}
