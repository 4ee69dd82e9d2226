#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/runtimes/shared/runtime.h"
#include "support/breakable_criu.h"

namespace kymo::runtime {

// A container runtime of this machine, or of its own, and kymod's runtime that uses it. All that differs between them in
// the suite of conformance stands here.
//
// Threads:   one at a time.
// Ownership: the destructor ends the containers and the servers.
class Engine {
 public:
  virtual ~Engine() = default;
  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  // How to run a container that counts. `further` are flags of the program that runs it.
  virtual RunSpec run_spec(const std::string& name, const std::vector<std::string>& further) = 0;
  // "running", "paused", or something else if it does not run.
  [[nodiscard]] virtual std::string status(const std::string& name) const = 0;
  // Ends the container, or does something else with it, without kymod.
  virtual void kill(const std::string& name) const = 0;
  virtual void unpause(const std::string& name) const = 0;
  virtual void start_again(const std::string& /*name*/) const {}
  // Only for servers.
  virtual void stop_answering() const {}
  virtual void answer_again() const {}
  [[nodiscard]] virtual std::string socket() const { return {}; }
  // The variable that names the socket, what comes before its path, and what the call of a restore has in it.
  [[nodiscard]] virtual std::string variable() const { return {}; }
  [[nodiscard]] virtual std::string scheme() const { return {}; }
  [[nodiscard]] virtual std::string restore_call(const RestoreSpec& /*spec*/) const { return {}; }
  virtual void make_runtime() = 0;

  [[nodiscard]] bool is_server() const { return !variable().empty(); }
  bool keeps_statistics = true;
  bool dumps_frozen = true;

 protected:
  std::unique_ptr<Runtime> runtime_;
};

// The names of all container runtimes.
inline constexpr const char* kEngines[] = {"runc", "podman", "containerd", "docker"};
// Why this one cannot be used here. Empty if it can.
std::string why_no_engine(std::string_view name);
std::unique_ptr<Engine> make_engine(std::string_view name, const test::BreakableCriu& criu);

}  // namespace kymo::runtime
