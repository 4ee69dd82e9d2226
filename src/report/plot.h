#pragma once

#include <string>

#include "analysis/summary.h"
#include "kymo/result.h"

namespace kymo::report {

enum class PictureFormat : unsigned char { png, svg };

// By the ending of `path`. Errors: invalid_argument, naming the endings there are.
Result<PictureFormat> picture_format(const std::string& path);

// Draws a recording into `path` with gnuplot: its phases, what was written over time, and the rate;
// where rows are missing the curves break. Errors: those of picture_format(), run_gnuplot() and of
// reading the recording; failed_precondition when no counter moved. Cost: a second pass over the
// rows.
Result<void> plot(const analysis::Summary& summary, const std::string& path);

// The script that plot() runs; its picture goes to standard output.
Result<std::string> plot_script(const analysis::Summary& summary, PictureFormat format);

}  // namespace kymo::report
