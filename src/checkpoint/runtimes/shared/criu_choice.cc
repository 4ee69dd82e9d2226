#include "checkpoint/runtimes/shared/criu_choice.h"

#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/file.h"

namespace kymo::runtime {
namespace {

// Since Linux 6.16, getsockopt(SO_PASSCRED) fails for internet sockets. A CRIU that asks every
// socket for this option then fails, too.
constexpr KernelVersion kNewSockets{6, 16};

// The first CRIU that does not ask internet sockets for it, and the first that restores the mount
// options of a container's root.
criu::Version new_sockets_and_roots() {
  return {4, 2, 0, {}};
}

bool older(const criu::Version& a, const criu::Version& b) {
  return std::tie(a.major, a.minor, a.sublevel) < std::tie(b.major, b.minor, b.sublevel);
}

bool has_new_sockets(const KernelVersion& kernel) {
  return std::tie(kernel.major, kernel.minor) >= std::tie(kNewSockets.major, kNewSockets.minor);
}

}  // namespace

KernelVersion kernel_version(const std::string& release) {
  KernelVersion version;
  const char* const end = release.data() + release.size();
  const auto major = std::from_chars(release.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') {
    return {};
  }
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  return minor.ec == std::errc() ? version : KernelVersion{};
}

KernelVersion running_kernel() {
  struct utsname names {};
  return ::uname(&names) == 0 ? kernel_version(names.release) : KernelVersion{};
}

std::string too_old_for_kernel(const criu::Version& version, const KernelVersion& kernel) {
  if (!has_new_sockets(kernel) || !older(version, new_sockets_and_roots())) {
    return {};
  }
  return "CRIU " + version.text() + " is too old for Linux " + std::to_string(kernel.major) + "." +
         std::to_string(kernel.minor) +
         ": it cannot dump a process with an internet socket; use CRIU 4.2 or later";
}

bool keeps_read_only_roots(const criu::Version& version) {
  return !older(version, new_sockets_and_roots());
}

bool has_read_only_root(pid_t pid) {
  const Result<std::string> text = read_file("/proc/" + std::to_string(pid) + "/mountinfo");
  std::istringstream lines(text ? *text : "");
  bool read_only = false;
  for (std::string line; std::getline(lines, line);) {
    // ID PARENT DEVICE ROOT MOUNT_POINT OPTIONS ...; the last mount of a place covers the others
    std::istringstream words(line);
    std::string skipped;
    std::string point;
    std::string options;
    words >> skipped >> skipped >> skipped >> skipped >> point >> options;
    if (point == "/") {
      read_only = options == "ro" || options.starts_with("ro,");
    }
  }
  return read_only;
}

CriuChoice::CriuChoice(std::vector<CriuProgram> programs, KernelVersion kernel)
    : programs_(std::move(programs)), kernel_(kernel) {}

const CriuProgram& CriuChoice::first_from(const criu::Version& oldest) const {
  const auto found = std::find_if(programs_.begin(), programs_.end(), [&](const auto& program) {
    return !older(program.version, oldest);
  });
  if (found != programs_.end()) {
    return *found;
  }
  return *std::max_element(programs_.begin(), programs_.end(), [](const auto& a, const auto& b) {
    return older(a.version, b.version);
  });
}

criu::Version CriuChoice::needed(bool read_only_root) const {
  return read_only_root || has_new_sockets(kernel_) ? new_sockets_and_roots() : criu::Version{};
}

const CriuProgram& CriuChoice::for_dump(bool read_only_root) const {
  return first_from(needed(read_only_root));
}

Result<CriuProgram> CriuChoice::for_restore(const std::string& tried, bool read_only_root,
                                            const std::string& made_by) const {
  const std::optional<criu::Version> maker = criu::Version::parse(made_by);
  if (!maker) {
    constexpr int kNewest = 1'000'000;
    return first_from({kNewest, 0, 0, {}});
  }
  const criu::Version least = needed(read_only_root);
  const CriuProgram& chosen = first_from(older(*maker, least) ? least : *maker);
  // A patch release does not change the format of images.
  if (std::tie(chosen.version.major, chosen.version.minor) < std::tie(maker->major, maker->minor)) {
    return Error{Code::failed_precondition, tried + ": CRIU " + made_by +
                                                " made its images, which CRIU " +
                                                chosen.version.text() +
                                                " cannot read: start kymod with that version or a "
                                                "later one (--criu, or --criu-fallback)"};
  }
  return chosen;
}

}  // namespace kymo::runtime
