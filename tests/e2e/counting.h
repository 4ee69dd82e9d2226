#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/breakable_criu.h"
#include "support/temporary_directory.h"

namespace kymo::test {

// `connected` is a process that counts what a server sends back over one connection.
enum class Kind : std::uint8_t { process, connected, runc, podman, containerd, docker };

// The reason why this kind cannot be dumped here, for GTEST_SKIP. Empty if it can.
const std::string& why_not(Kind kind);

// A process or a container that counts, with everything that its runtime needs. Its program cannot be
// started a second time: a second start ends at once. So if it counts after a restore, it was really
// restored.
class Counting {
 public:
  // The runtime uses this criu.
  // `with_deleted_file`: it has a file open that it has deleted.
  static std::unique_ptr<Counting> make(Kind kind, const BreakableCriu& criu,
                                        bool with_deleted_file = false);
  virtual ~Counting();
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  // The flags of kymod that this kind needs.
  [[nodiscard]] virtual std::vector<std::string> flags() const = 0;
  // The words of `kymo` that start it, and those that name it.
  [[nodiscard]] virtual std::vector<std::string> run() = 0;
  [[nodiscard]] const std::string& name() const { return name_; }
  // Makes the runtime forget the container that was dumped, if the runtime still has it and a restore needs
  // it gone.
  virtual void forget() {}

  // How many connections it has made. If one is lost, it makes another one.
  [[nodiscard]] virtual int connections() const { return 0; }

  // The pids of all copies, whether running, stopped or half restored.
  [[nodiscard]] std::vector<pid_t> copies() const;
  // Whether there is a file that CRIU has made again, because the deleted one is open.
  [[nodiscard]] bool has_ghost() const;
  // The number to which the only copy has counted. 0 if no copy runs.
  [[nodiscard]] std::uint64_t number() const;
  // Whether there is exactly one copy, and it counts.
  [[nodiscard]] bool counts() const;

 protected:
  explicit Counting(std::string name) : name_(std::move(name)) {}
  // The command of a container.
  [[nodiscard]] std::vector<std::string> command() const;
  [[nodiscard]] virtual std::string file() const { return "/count"; }
  // The folder of the deleted file, in the file system of the machine.
  [[nodiscard]] virtual std::string root() const { return folder_.path(); }
  [[nodiscard]] bool with_deleted_file() const { return with_deleted_file_; }

  TemporaryDirectory folder_;

 private:
  const std::string name_;
  bool with_deleted_file_ = false;
};

}  // namespace kymo::test
