#include "runtimes/podman/podman_monitor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace kymo::runtime {
namespace {

#ifdef MFD_EXEC
constexpr unsigned kExecutable = MFD_EXEC;
#else
constexpr unsigned kExecutable = 0x10;  // since Linux 6.3
#endif

// conmon gets the runtime's path by its first -r. As long as the variable is not set, the script was called as conmon.
constexpr std::string_view kBeforeConmon = R"sh(#!/bin/sh
if [ -n "${KYMO_OCI_RUNTIME-}" ]; then
  command -v unshare >/dev/null && exec unshare --mount --propagation slave -- "$KYMO_OCI_RUNTIME" "$@"
  exec "$KYMO_OCI_RUNTIME" "$@"
fi
left=$#
last=
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  if [ "$last" = -r ] && [ -z "${KYMO_OCI_RUNTIME-}" ]; then
    export KYMO_OCI_RUNTIME="$word"
    word=$0
  fi
  set -- "$@" "$word"
  last=$word
  left=$((left - 1))
done
exec ')sh";
constexpr std::string_view kAfterConmon = R"sh(' "$@"
)sh";

}  // namespace

std::optional<PodmanMonitor> PodmanMonitor::make(const std::string& conmon) {
  if (!conmon.starts_with('/') || conmon.find('\'') != std::string::npos) return std::nullopt;
  PodmanMonitor writable(FileDescriptor(::memfd_create("conmon", MFD_CLOEXEC | kExecutable)));
  if (!writable.script_.valid()) {  // an older kernel
    writable.script_ = FileDescriptor(::memfd_create("conmon", MFD_CLOEXEC));
  }
  std::string text(kBeforeConmon);
  text += conmon;
  text += kAfterConmon;
  std::size_t written = 0;
  if (!writable.script_.valid() || write_all(writable.script_.get(), text, &written) != 0) {
    return std::nullopt;
  }
  // A file that is open for writing cannot be executed, so it is opened again.
  PodmanMonitor monitor(FileDescriptor(::open(writable.path().c_str(), O_RDONLY | O_CLOEXEC)));
  const bool starts = ::access(monitor.path().c_str(), X_OK) == 0;
  return starts ? std::optional(std::move(monitor)) : std::nullopt;
}

std::string PodmanMonitor::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(script_.get());
}

}  // namespace kymo::runtime
