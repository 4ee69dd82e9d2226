#pragma once

#include <string>
#include <vector>

#include "checkpoint/criu/drive/client.h"
#include "kymo/result.h"

namespace kymo::criu {

// Really restores the images, up to the moment before anything of them runs, and takes it back: on a
// Stage. So the pids need not be free, the processes may still be there, and no connection is touched.
//
// Not seen are things that only the machine's own network has, such as a device. A rehearsal that needs
// them fails although a restore may succeed.
//
// Threads: any. Blocks for about as long as a restore takes.
// Errors:  those of a restore (Client); failed_precondition also if there can be no stage. In every
//          case nothing is left.
// Cost:    that of a restore, also in memory, and some milliseconds.
Result<void> rehearse(const ClientOptions& options, const RehearsalRequest& request);

// Namespaces for pids, mounts and the network, in which each address is one of this machine. The first
// process there is the command. The kernel ends all others with it, so that nothing can be left.
struct Stage {
  // An empty folder, in which the stage keeps files of its own.
  std::string folder;
  // A folder of which the stage only reads: what is changed in it goes to memory.
  struct Covered {
    std::string folder;
    std::string layers = kItself;  // what is seen there, as the lowerdir of an overlay
  };
  static constexpr char kItself[] = ".";
  std::vector<Covered> covered;
  // Which file the action script makes, or writes to, when CRIU comes to the moment before anything
  // runs: a path as it is on the stage.
  std::string said;

  // The words that run `command` there. The first is looked up on PATH.
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& command) const;
  // On the stage: an action script of CRIU that ends a restore before anything runs, and a configuration
  // file of CRIU that names it.
  [[nodiscard]] std::string script() const { return folder + "/stop"; }
  [[nodiscard]] std::string config() const { return folder + "/criu.conf"; }
};

}  // namespace kymo::criu
