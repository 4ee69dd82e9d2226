#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kymo/result.h"

namespace kymo::analysis {

// A column thinned to what a picture can show. Between two points that are neighbours in time every
// value lies within the later one's `low` and `high`: no spike is lost.
struct Point {
  std::uint64_t time_ns = 0;  // of the last row in it
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t last = 0;
};

struct Series {
  std::size_t column = 0;  // in the order of the header, without the time
  std::vector<Point> points;
};

// Which rows, and how finely.
struct SeriesRequest {
  std::vector<std::size_t> columns;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  std::size_t max_points = 2000;
};

// Reads these columns between two times, a point for each equal piece of time that holds a row.
// Errors: those of TsvReader. Cost: one pass over the file, max_points points a column.
Result<std::vector<Series>> read_series(const std::string& path, const SeriesRequest& request);

}  // namespace kymo::analysis
