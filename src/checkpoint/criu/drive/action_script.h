#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/line_reader.h"
#include "base/pipe.h"
#include "kymo/result.h"

namespace kymo::criu {

// An action script of criu (its --action-script), which writes the name of the point that criu passes and the pid of
// its root process into a pipe, and waits for the answer from another one. criu fails if the answer is no.
//
// The script and the pipes are reached through /proc/PID/fd of this process. So no file is left behind, and the
// script fails if this process is gone.
//
// Threads:   one at a time.
// Ownership: owns the pipes; it must outlive criu.
// Errors:    the system's.
class ActionScript {
 public:
  // Whether this is the path of such a script, also of another kymod.
  static bool is_path(std::string_view path);
  static Result<std::unique_ptr<ActionScript>> make();
  // The path of the script.
  [[nodiscard]] std::string path() const;
  // A path of a configuration file of criu that names the script, for the variable CRIU_CONFIG_FILE of a criu that
  // another program starts.
  [[nodiscard]] std::string config_path() const;
  // Can be read when a name is there.
  [[nodiscard]] int names() const { return names_.from.get(); }
  struct Point {
    std::string name;
    pid_t root = 0;  // of criu's processes, as this process sees it; 0: it is not there yet
  };
  // The next point, if criu has passed one.
  std::optional<Point> next();
  void answer(bool go_on);

 private:
  Pipe names_;    // written by the script
  Pipe answers_;  // read by it
  FileDescriptor script_;
  FileDescriptor config_;
  LineReader lines_{-1};  // of the names
};

}  // namespace kymo::criu
