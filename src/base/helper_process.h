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

// Starts the helper, with `argument` as its only argument, and sends the first order, which is one line with its end.
// The helper reads orders from descriptor 0 and answers on descriptor 1.
// Threads: any.
// Errors:  the system's.
Result<HelperProcess> start_helper(const char* argument, std::string_view order);

// Begins the life of a helper: takes a name, which has at most 15 bytes. Its files can be read by this user
// alone. Signals that a terminal or systemd sends to all processes of the program do not end it: it ends
// when the program closes its orders. Returns where it answers: no longer on standard output, which its
// readers of foreign files keep, but on a descriptor that they do not have. That one stays open.
// Threads: the only one of the process.
int begin_helper(const char* name, int answers);

// Says something, which is one line without its end. A program that is gone does not hear it.
void write_line(int to, const std::string& line);

}  // namespace kymo
