#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::report {

// Runs `gnuplot` (found on PATH, without the user's settings) on a script that writes its picture
// to standard output, and puts that picture at `path`: whole, or not at all.
//
// Threads: any. Errors: not_found without gnuplot; deadline_exceeded; internal with what gnuplot
// said; of writing `path`. Whatever stood at `path` before stays when it fails. Cost: blocks
// until gnuplot is done, at most `limit`.
Result<void> run_gnuplot(const std::string& script, const std::string& path,
                         std::chrono::milliseconds limit);

// Text, made printable, within gnuplot's single quotes.
std::string gnuplot_quoted(std::string_view text);

}  // namespace kymo::report
