#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::analysis {

// A point of a column that is thinned for a picture. It stands for all rows after the point before.
// Their values are between `low` and `high`, so no spike is lost.
struct Point {
  std::uint64_t time_ns = 0;  // of the last of these rows
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t last = 0;
};

struct Series {
  std::size_t column = 0;  // in the order of the header, without the time
  std::vector<Point> points;
};

// Which rows of which columns to read, and the maximum number of points for each column.
struct SeriesRequest {
  std::vector<std::size_t> columns;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  std::size_t max_points = 2000;
};

// Reads the columns. The time is cut into equal pieces, and each piece that holds a row becomes a
// point.
//
// Errors: those of TsvReader.
// Cost:   one pass over the file; max_points points for each column.
Result<std::vector<Series>> read_series(const std::string& path, const SeriesRequest& request);

}  // namespace kymo::analysis
