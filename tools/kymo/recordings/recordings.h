#pragma once

#include <string>
#include <vector>

#include "kymo/result.h"
#include "verbs.h"

namespace kymo::cli {

// Waits up to 3 s for recordings that kymod is about to finish, and prints a note on stderr.
void wait_for_recordings(const std::vector<std::string>& paths);

// Adds --wait-for-recording, which a dump or restore follows when it has shown its result.
void add_recording_option(CLI::App& verb, Context& context);
// Waits, if the user asked for it, until kymod has closed this recording. Empty: there is none.
void wait_if_asked(Context& context, const std::string& recording);

// The output file for each recording. A single recording gets `asked`. Of several, each gets its
// own: out.csv becomes out-dump.csv and out-restore.csv.
//
// Errors: invalid_argument if two recordings would get the same file.
Result<std::vector<std::string>> outputs_for(const std::string& asked,
                                             const std::vector<std::string>& recordings);

}  // namespace kymo::cli
