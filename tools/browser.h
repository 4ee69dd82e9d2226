#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::cli {

// Shows `url_once`, a link that works once, in a browser: by the program that the desktop opens
// addresses with; BROWSER names another. Waits for that program.
//
// Every user can read a command line, and a link on it could be used by somebody faster than the
// browser. So the program is given the name of a file that its owner alone can read and that leads
// to the link: open.html in $XDG_RUNTIME_DIR/kymograph, else in $HOME/.cache/kymograph.
//
// Errors: there is no link or no safe place for the file, or the program cannot be started or
// fails; the line says what to do.
Result<void> open_in_browser(const std::string& url_once);

}  // namespace kymo::cli
