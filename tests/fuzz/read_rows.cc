#include "read_rows.h"

#include "targets.h"

namespace kymo::fuzz {

RowsRead read_rows(analysis::TsvReader& reader) {
  RowsRead read;
  std::uint64_t last_time = 0;
  // A block of four rows, so that short inputs also reach its end.
  analysis::RowBlock block(reader.columns().size() + 1, 4);
  for (;;) {
    const auto more = reader.next(block);
    require(more.ok(), "what is there can be read");
    if (!*more) {
      break;
    }
    require(block.rows() != 0, "a block that was filled holds rows");
    read.rows += block.rows();
    for (const std::uint64_t time : block.times()) {
      require(time >= last_time, "time never goes back");
      last_time = time;
    }
    for (std::size_t column = 0; column <= reader.columns().size(); ++column) {
      for (const std::uint64_t value : block.column(column)) {
        read.sum = read.sum * 31 + value;
      }
    }
  }
  read.left_out = reader.left_out().lines();
  require(reader.left_out().sentences().size() <= analysis::LeftOut::kMaxSpans + 1,
          "the list of damage is bounded");
  return read;
}

}  // namespace kymo::fuzz
