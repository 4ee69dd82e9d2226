#pragma once

#include <optional>
#include <string>
#include <vector>

#include "criu/client.h"
#include "kymo/result.h"

namespace kymo::runtime {

// A criu that may be used.
struct CriuProgram {
  std::string path;
  std::string folder;  // has it under the name criu, which runc and podman look for on PATH
  criu::Version version;
};

struct KernelVersion {
  int major = 0;
  int minor = 0;
};
// Of a release such as "6.18.44-amd64"; zeros where it does not begin with two numbers.
KernelVersion kernel_version(const std::string& release);
KernelVersion running_kernel();

// Why a CRIU of this version is too old for the kernel, as a clause that names both and says what
// to do; empty: nothing is known against it.
std::string too_old_for_kernel(const criu::Version& version, const KernelVersion& kernel);

// Whether a container whose root is read-only has it so after a restore, too.
bool keeps_read_only_roots(const criu::Version& version);

// Whether a process sees its root mounted read-only. False where it cannot be told.
bool has_read_only_root(pid_t pid);

// Which of the CRIUs at hand does a dump or a restore: the first, by the order given, that can do
// it. What each version cannot do is known from trials (docs/runtimes.md, "Which criu"):
//
//   a kernel from 6.16 on         before 4.2 no process with an internet socket is dumped
//   a container's read-only root  before 4.2 it is restored, and can be written to afterwards
//   images of another CRIU        an older one cannot restore those of a newer
//
// Threads: any; nothing changes once it is made. Cost: none, nothing is started.
class CriuChoice {
 public:
  // `programs`: at least one, the preferred first.
  CriuChoice(std::vector<CriuProgram> programs, KernelVersion kernel);

  // Where none can do all of it, the newest: what it cannot do may not be asked of it.
  [[nodiscard]] const CriuProgram& for_dump(bool read_only_root) const;
  // `made_by`: the version that made the images, as the checkpoint has it; not known: the newest
  // CRIU is taken, which reads the images of all others. Errors: failed_precondition: every one is
  // older than that; the message begins with `tried`.
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
