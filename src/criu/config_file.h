#pragma once

#include <string>

#include "base/file.h"
#include "criu/options.h"
#include "kymo/result.h"

namespace kymo::criu {

// A configuration file of CRIU in memory, for the options that CRIU's RPC does not have.
class ConfigFile {
 public:
  // No file is made if these options need none.
  static Result<ConfigFile> make(const Options& options);
  // Where criu finds it while this process lives and has the object. Empty: there is none.
  [[nodiscard]] std::string path() const;

 private:
  FileDescriptor file_;
};

}  // namespace kymo::criu
