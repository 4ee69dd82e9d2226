#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/file.h"
#include "kymo/result.h"

// A second process of this program that works for it. Both talk by lines of text, through pipes.
namespace kymo {

struct HelperProcess {
  pid_t pid = 0;           // to be reaped by the program
  FileDescriptor orders;   // what the program says. The helper ends when this is closed
  FileDescriptor answers;  // what the helper says. To read from it does not wait
};

// Starts the helper, with `argument` as its only argument, and sends the first orders, which are whole
// lines. The helper reads orders from descriptor 0 and answers on descriptor 1.
// Threads: any.
// Errors:  the system's.
Result<HelperProcess> start_helper(const char* argument, std::string_view order);

// The first call of a helper. Gives the process a name, of at most 15 bytes, and makes the files
// that it creates readable by this user only. Makes it ignore the signals that a terminal or
// systemd sends to all processes of the program: it ends when the program closes the pipe of its
// orders. Returns the descriptor for its answers. It replaces standard output, which child
// processes that read foreign files inherit. It stays open.
// Threads: the only one of the process.
int begin_helper(const char* name, int answers);

// Writes one line, given without its line end. An error, such as that the reader is gone, is
// ignored.
void write_line(int to, const std::string& line);

}  // namespace kymo
