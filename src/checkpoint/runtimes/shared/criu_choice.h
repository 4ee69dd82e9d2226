#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/criu/drive/client.h"
#include "kymo/result.h"

namespace kymo::runtime {

// A criu that kymod can use.
struct CriuProgram {
  std::string path;
  std::string folder;  // contains it under the name criu, for which runc and podman search PATH
  criu::Version version;
};

struct KernelVersion {
  int major = 0;
  int minor = 0;
};
// Returns the version of a release such as "6.18.44-amd64". Both numbers are 0 if the release does
// not begin with two numbers.
KernelVersion kernel_version(const std::string& release);
KernelVersion running_kernel();

// Returns why a CRIU of this version is too old for the kernel. The text names both and says what
// to do. Empty if no problem is known.
std::string too_old_for_kernel(const criu::Version& version, const KernelVersion& kernel);

// Whether the root of a container stays read-only after a restore with this version.
bool keeps_read_only_roots(const criu::Version& version);

// Whether the root of a process is mounted read-only. False if that is unknown.
bool has_read_only_root(pid_t pid);

// Chooses the CRIU for a dump or a restore: the first in the given order that can do it. Trials
// have shown what each version cannot do (docs/runtimes.md, "Which criu"):
//
//   kernel 6.16 or later            before 4.2, CRIU cannot dump a process with an internet socket
//   container with read-only root   before 4.2, the root can be written to after a restore
//   images of another CRIU          an older CRIU cannot restore the images of a newer one
//
// Threads: any; the object does not change after it is made.
// Cost:    none; no program is started.
class CriuChoice {
 public:
  // `programs`: at least one, the preferred one first.
  CriuChoice(std::vector<CriuProgram> programs, KernelVersion kernel);

  // Returns the newest CRIU if none can do everything. The dump can still succeed, because it may
  // not need what that CRIU cannot do.
  [[nodiscard]] const CriuProgram& for_dump(bool read_only_root) const;
  // `made_by`: the version that made the images, as the checkpoint records it. If it is unknown,
  //            the newest CRIU is chosen, because it can read the images of all others.
  // Errors: failed_precondition if every CRIU is older than `made_by`. The message begins with
  //         `tried`.
  [[nodiscard]] Result<CriuProgram> for_restore(const std::string& tried, bool read_only_root,
                                                const std::string& made_by) const;
  [[nodiscard]] const std::vector<CriuProgram>& programs() const { return programs_; }
  [[nodiscard]] const KernelVersion& kernel() const { return kernel_; }

 private:
  [[nodiscard]] const CriuProgram& first_from(const criu::Version& oldest) const;
  [[nodiscard]] criu::Version needed(bool read_only_root) const;

  std::vector<CriuProgram> programs_;
  KernelVersion kernel_;
};

}  // namespace kymo::runtime
