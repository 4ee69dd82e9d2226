#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::report {

// Runs `gnuplot` from PATH, without the user's settings, on a script that writes a picture to
// standard output. When the picture is complete, it replaces the file at `path`.
//
// Threads: any.
// Errors:  not_found if there is no gnuplot.
//          deadline_exceeded after `limit`.
//          internal with gnuplot's error message.
//          Those of writing `path`. If it fails, an existing file at `path` is unchanged.
// Cost:    blocks until gnuplot has ended, at most for `limit`.
Result<void> run_gnuplot(const std::string& script, const std::string& path,
                         std::chrono::milliseconds limit);

// The text, made printable, in single quotes as gnuplot needs it.
std::string gnuplot_quoted(std::string_view text);

}  // namespace kymo::report
