#include "daemon/config/find_criu.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "checkpoint/criu/drive/breakpoints.h"

namespace kymo::daemon {
namespace {

constexpr std::chrono::seconds kOneCall(30);

// Makes `folder`/criu: a link to this CRIU, or, if its environment needs a variable, a script that
// starts it. podman passes no variable on.
Result<void> make_named_criu(const std::string& criu, const std::string& folder,
                             const char* variable) {
  std::error_code error;
  make_folders(folder);
  const std::string named = folder + "/criu";
  std::filesystem::remove(named, error);
  if (variable == nullptr) {
    std::filesystem::create_symlink(criu, named, error);
  } else {
    std::ofstream(named) << "#!/bin/sh\n" << variable << " exec '" << criu << "' \"$@\"\n";
    std::filesystem::permissions(named, std::filesystem::perms{0755}, error);
  }
  if (error) return system_error("make " + named + " for " + criu, error.value());
  return {};
}

// Returns the folder to put first on PATH so that runc and podman find this CRIU. They look for a
// program named criu.
Result<std::string> folder_with_criu(const std::string& criu, const std::string& folder) {
  const char* const variable = criu::without_breakpoints();
  const std::filesystem::path program(criu);
  if (program.filename() == "criu" && variable == nullptr) return program.parent_path().string();
  if (Result<void> made = make_named_criu(criu, folder, variable); !made) return made.error();
  return folder;
}

Result<runtime::CriuProgram> look_at(const std::string& path, const std::string& folder,
                                     criu::ClientOptions options) {
  options.path = path;
  options.timeout = kOneCall;
  const criu::Client client(std::move(options));
  const Result<criu::Version> version = client.version();
  if (!version) return version.error();
  if (Result<void> good = client.check(); !good) return good.error();
  Result<std::string> named = folder_with_criu(path, folder);
  if (!named) return named.error();
  return runtime::CriuProgram{path, std::move(named).value(), *version};
}

}  // namespace

Result<runtime::CriuChoice> find_crius(const Config& config, const criu::ClientOptions& options) {
  std::vector<runtime::CriuProgram> programs;
  // Start the one that is used less first. CRIU caches what it finds out about the kernel, and each
  // version overwrites the cache of the other.
  if (!config.criu_fallback.empty()) {
    Result<runtime::CriuProgram> fallback =
        look_at(config.criu_fallback, config.state_dir + "/bin-fallback", options);
    if (fallback) {
      programs.push_back(std::move(fallback).value());
    } else {
      spdlog::warn("--criu-fallback is not used: {}", fallback.error().message);
    }
  }
  Result<runtime::CriuProgram> preferred = look_at(config.criu, config.state_dir + "/bin", options);
  if (preferred) {
    programs.insert(programs.begin(), std::move(preferred).value());
  } else if (programs.empty()) {
    return preferred.error();
  } else {
    spdlog::warn("--criu is not used: {}", preferred.error().message);
  }
  runtime::CriuChoice choice(std::move(programs), runtime::running_kernel());
  const std::string too_old =
      runtime::too_old_for_kernel(choice.for_dump(false).version, choice.kernel());
  if (!too_old.empty()) spdlog::warn("{}", too_old);
  return choice;
}

}  // namespace kymo::daemon
