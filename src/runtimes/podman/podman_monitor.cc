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
if [ -z "${KYMO_OCI_RUNTIME-}" ]; then
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
fi

if [ -z "${KYMO_APART-}" ]; then
  export KYMO_APART=1
  unshare --mount --propagation slave true 2>/dev/null &&
    exec unshare --mount --propagation slave -- "$0" "$@"
fi
runtime=$KYMO_OCI_RUNTIME
unset KYMO_OCI_RUNTIME KYMO_APART

last=
pid_file=
for word in "$@"; do
  case $last in
    --pid-file) pid_file=$word ;;
    --work-path) log=$word/restore.log ;;
  esac
  last=$word
done
# A runtime that was killed while it wrote its pid has left this file, and the next would refuse to start.
[ -z "$pid_file" ] || rm -f "${pid_file%/*}/.${pid_file##*/}"

setpriv --pdeathsig KILL true 2>/dev/null || exec "$runtime" "$@"

# Like the runtime, do not end by the signals that conmon passes on. The runtime ends with this script, as it would end
# with conmon. stderr is the container's, and must not get the shell's "Killed".
trap : INT QUIT TERM
{ setpriv --pdeathsig KILL -- "$runtime" "$@" 2>&9 9>&-; } 9>&2 2>/dev/null
status=$?
[ "$status" -eq 137 ] || exit "$status"

# The runtime was killed, and CRIU and what it restores are conmon's children. They have the log open until the
# container runs.
goes_on() {
  for child in $(cat "/proc/$PPID/task/"*/children 2>/dev/null); do
    for file in "/proc/$child/fd/"*; do
      [ "$file" -ef "$log" ] && return 0
    done
  done
  return 1
}
while goes_on; do sleep 0.05; done
pid=$("$runtime" state "$last" 2>/dev/null | sed -n 's/^ *"pid": *\([1-9][0-9]*\),*$/\1/p')
if [ -n "$pid" ] && grep -q 'Restore finished successfully' "$log"; then
  printf %s "$pid" >"$pid_file" && exit 0
fi
echo "$runtime was killed" >&2
exit "$status"
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
