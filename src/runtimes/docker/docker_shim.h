#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace kymo::runtime {

// Docker's API says neither where CRIU writes its log and its statistics nor keeps them: they are
// in the folder of containerd's shim, the parent of the container's first process, which runs in
// its folder. Docker 20.10 with containerd 1.6 removes them after a dump and a failed restore.

// While it exists, CRIU writes the log and the statistics of a dump into `work_dir`: there is a
// link in the place of the folder that the shim would make for CRIU. If the shim is of another
// kind, nothing happens, and these files are missing after the dump.
//
// Ownership: the destructor removes the link. The shim has already removed it after a dump.
class DockerDumpFiles {
 public:
  // `process`: the first process of the container.
  DockerDumpFiles(pid_t process, const std::string& work_dir);
  ~DockerDumpFiles();
  DockerDumpFiles(const DockerDumpFiles&) = delete;
  DockerDumpFiles& operator=(const DockerDumpFiles&) = delete;

 private:
  std::string link_;  // empty: there is none
};

// Looks for the shim of a restore while the restore runs, and gets hold of CRIU's log and
// statistics before they are removed.
//
// Threads:   one caller. It has its own thread, which looks every few milliseconds.
// Ownership: the destructor ends the thread.
class DockerRestoreFiles {
 public:
  // `id`:   of the container, which does not run.
  // `link`: becomes a link to the folder of CRIU's log while the restore runs.
  DockerRestoreFiles(std::string id, std::string link);
  ~DockerRestoreFiles();
  DockerRestoreFiles(const DockerRestoreFiles&) = delete;
  DockerRestoreFiles& operator=(const DockerRestoreFiles&) = delete;

  // Ends the thread, after Docker has answered. Copies the log and the statistics into `work_dir`.
  // Detaches the mounts that CRIU left if it was killed.
  void finish(const std::string& work_dir);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
};

}  // namespace kymo::runtime
