#pragma once

#include <string>

#include "criu/phases.h"
#include "kymo/result.h"
#include "report/plot.h"

namespace kymo::report {

// Draws the phases of a dump or restore as a Gantt chart on the log's clock: a line for each phase,
// and a bar for each time it ran. `title` is above it.
//
// Errors: those of plot().
Result<void> draw_gantt(const criu::LogPhases& phases, const std::string& title,
                        const std::string& path);

// The script that draw_gantt() runs. It writes the picture to standard output.
std::string gantt_script(const criu::LogPhases& phases, const std::string& title,
                         PictureFormat format);

}  // namespace kymo::report
