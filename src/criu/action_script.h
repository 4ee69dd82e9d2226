#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/line_reader.h"
#include "base/pipe.h"
#include "kymo/result.h"

namespace kymo::criu {

// An action script of criu (its --action-script), which writes the name of the point that criu passes into a
// pipe, and waits for the answer from another one. criu fails if the answer is no.
//
// The script and the pipes are reached through /proc/PID/fd of this process. So no file is left behind, and the
// script fails if this process is gone.
//
// Threads:   one at a time.
// Ownership: owns the pipes; it must outlive criu.
// Errors:    the system's.
class ActionScript {
 public:
  static Result<std::unique_ptr<ActionScript>> make();
  // The path of the script.
  [[nodiscard]] std::string path() const;
  // A path of a configuration file of criu that names the script, for the variable CRIU_CONFIG_FILE of a criu that
  // another program starts.
  [[nodiscard]] std::string config_path() const;
  // Can be read when a name is there.
  [[nodiscard]] int names() const { return names_.from.get(); }
  // The next whole name, if one is there.
  std::optional<std::string> next();
  void answer(bool go_on);

 private:
  Pipe names_;    // written by the script
  Pipe answers_;  // read by it
  FileDescriptor script_;
  FileDescriptor config_;
  LineReader lines_{-1};  // of the names
};

}  // namespace kymo::criu
