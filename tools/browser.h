#pragma once

#include <string>

#include "kymo/result.h"

namespace kymo::cli {

// Opens `url_once`, a link that works once, in a browser: with the program of the desktop, or the
// one that the variable BROWSER names. Waits for that program.
//
// Every user can read a command line, and could use the link on it before the browser does.
// Therefore the program gets the name of a file that leads to the link and that only its owner can
// read: open.html in $XDG_RUNTIME_DIR/kymograph, or else in $HOME/.cache/kymograph.
//
// Errors: there is no link, there is no safe place for the file, or the program cannot be started
//         or fails. The message says what to do.
Result<void> open_in_browser(const std::string& url_once);

}  // namespace kymo::cli
