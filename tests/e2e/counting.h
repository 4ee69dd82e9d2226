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

// `connected`: a process that counts what a server sends back over one connection.
enum class Kind : std::uint8_t { process, connected, runc, podman, containerd, docker };

// Why the kind cannot be dumped here, for GTEST_SKIP. Empty: it can.
const std::string& why_not(Kind kind);

// A process or a container that counts, with whatever its runtime needs. Its program does not start twice: a
// second start ends at once, so that what counts after a restore was restored.
class Counting {
 public:
  // Its runtime uses this criu.
  static std::unique_ptr<Counting> make(Kind kind, const BreakableCriu& criu);
  virtual ~Counting();
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  // For kymod.
  [[nodiscard]] virtual std::vector<std::string> flags() const = 0;
  // The words of `kymo` that run it, and name it.
  [[nodiscard]] virtual std::vector<std::string> run() = 0;
  [[nodiscard]] const std::string& name() const { return name_; }
  // Forgets the container that was dumped, if its runtime still has it and its restore makes it anew.
  virtual void forget() {}

  // How many connections it has made. When one is lost it makes another.
  [[nodiscard]] virtual int connections() const { return 0; }

  // The pids of all its copies: running, stopped or half restored.
  [[nodiscard]] std::vector<pid_t> copies() const;
  // The number that the only copy has counted to. 0 if no copy runs.
  [[nodiscard]] std::uint64_t number() const;
  // Whether there is one copy, and it counts.
  [[nodiscard]] bool counts() const;

 protected:
  explicit Counting(std::string name) : name_(std::move(name)) {}
  // The words of a container's command.
  [[nodiscard]] std::vector<std::string> command() const;
  [[nodiscard]] virtual std::string file() const { return "/count"; }

  TemporaryDirectory folder_;

 private:
  const std::string name_;
};

}  // namespace kymo::test
