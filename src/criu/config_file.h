#pragma once

#include <string>

#include "base/file.h"
#include "criu/options.h"
#include "kymo/result.h"

namespace kymo::criu {

// A configuration file of CRIU in memory, for the options that CRIU's RPC does not have.
class ConfigFile {
 public:
  // Makes the file, unless these options need none.
  static Result<ConfigFile> make(const Options& options);
  // The path by which criu can open the file, as long as this process runs and this object exists.
  // Empty if there is no file.
  [[nodiscard]] std::string path() const;

 private:
  FileDescriptor file_;
};

}  // namespace kymo::criu
