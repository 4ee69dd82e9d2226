#pragma once

#include <string>

#include "criu/phases.h"
#include "kymo/result.h"
#include "report/plot.h"

namespace kymo::report {

// The phases of a dump or restore as a Gantt picture: a line a phase, a bar a stretch, on the log's
// clock. `title` stands above. Errors: as of plot().
Result<void> draw_gantt(const criu::LogPhases& phases, const std::string& title,
                        const std::string& path);

// The script that draw_gantt() runs; its picture goes to standard output.
std::string gantt_script(const criu::LogPhases& phases, const std::string& title,
                         PictureFormat format);

}  // namespace kymo::report
