#include "analysis/series.h"

#include <algorithm>

#include "analysis/tsv_reader.h"

namespace kymo::analysis {
namespace {

void add(Series& series, bool opens_point, std::uint64_t time_ns, std::uint64_t value) {
  if (opens_point) {
    series.points.push_back({time_ns, value, value, value});
    return;
  }
  Point& point = series.points.back();
  point.time_ns = time_ns;
  point.low = std::min(point.low, value);
  point.high = std::max(point.high, value);
  point.last = value;
}

}  // namespace

Result<std::vector<Series>> read_series(const std::string& path, const SeriesRequest& request) {
  auto reader = TsvReader::open(path);
  if (!reader) {
    return reader.error();
  }
  std::vector<Series> all;
  for (const std::size_t column : request.columns) {
    if (column >= reader->columns().size()) {
      return Error{Code::out_of_range, "read column " + std::to_string(column) + " of " + path +
                                           ": it has " + std::to_string(reader->columns().size())};
    }
    all.push_back({column, {}});
  }
  const std::uint64_t span = request.last_ns - std::min(request.first_ns, request.last_ns);
  const std::uint64_t piece = span / std::max<std::size_t>(request.max_points, 1) + 1;
  std::uint64_t open_piece = UINT64_MAX;
  RowBlock block = reader->make_block();
  for (;;) {
    auto more = reader->next(block);
    if (!more) {
      return more.error();
    }
    if (!*more) {
      return all;
    }
    for (std::size_t row = 0; row < block.rows(); ++row) {
      const std::uint64_t time = block.times()[row];
      if (time < request.first_ns || time > request.last_ns) {
        continue;
      }
      const std::uint64_t this_piece = (time - request.first_ns) / piece;
      for (Series& series : all) {
        add(series, this_piece != open_piece, time, block.column(series.column + 1)[row]);
      }
      open_piece = this_piece;
    }
  }
}

}  // namespace kymo::analysis
