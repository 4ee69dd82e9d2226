#include "criu/config_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace kymo::criu {

Result<ConfigFile> ConfigFile::make(const Options& options) {
  ConfigFile config;
  if (options.file_validation == FileValidation::unset) return config;
  const std::string text =
      "file-validation " + std::string(name_of(options.file_validation)) + "\n";
  config.file_ = FileDescriptor(memfd_create("criu-configuration", MFD_CLOEXEC));
  std::size_t written = 0;
  const int error = config.file_.valid() ? write_all(config.file_.get(), text, &written) : errno;
  if (error != 0) return system_error("cannot write a configuration file for criu", error);
  return config;
}

std::string ConfigFile::path() const {
  if (!file_.valid()) return {};
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.get());
}

}  // namespace kymo::criu
