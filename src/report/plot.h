#pragma once

#include <string>

#include "analysis/summary.h"
#include "kymo/result.h"

namespace kymo::report {

enum class PictureFormat : unsigned char { png, svg };

// The format that the ending of `path` means.
//
// Errors: invalid_argument, naming the valid endings.
Result<PictureFormat> picture_format(const std::string& path);

// Draws a recording into `path` with gnuplot: its phases, the busiest counters over time, and their
// rates. The curves have gaps where rows are missing.
//
// Errors: those of picture_format(), of run_gnuplot() and of reading the recording.
//         failed_precondition if no counter moved.
// Cost:   a second pass over the rows.
Result<void> plot(const analysis::Summary& summary, const std::string& path);

// The script that plot() runs. It writes the picture to standard output.
Result<std::string> plot_script(const analysis::Summary& summary, PictureFormat format);

}  // namespace kymo::report
