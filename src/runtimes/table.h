#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "criu/client.h"
#include "kymo/result.h"
#include "runtime/runtime.h"

namespace kymo::runtime {

// What runtimes are made with; each takes what it needs.
struct RuntimeSettings {
  // Of plain processes: criu.called counts the calls, criu.timeout bounds each dump and restore.
  criu::ClientOptions criu;
  // A plain process that a runtime made has ended: process/process_runtime.h.
  std::function<void(const ProcessId& process, int wait_status)> exited;
  // Put first on PATH: container runtimes look for criu by name.
  std::string criu_folder;
  // Of each command that a container runtime starts. 0: none.
  std::chrono::milliseconds timeout{0};
  std::string runc_root;
  std::vector<std::string> podman_flags;
};

// One runtime.
struct RuntimeRow {
  // As users type it and as checkpoints store it; also the name of its program. In capitals it is
  // the name of a value of the API's enum Runtime; a test compares them.
  std::string_view name;
  std::unique_ptr<Runtime> (*make)(const RuntimeSettings& settings) = nullptr;
  // The rest is of container runtimes alone.
  Result<OciRuntime> (*oci_runtime)() = nullptr;
  // Containers are started and restored from a bundle, under an id that the user chooses.
  bool has_bundles = false;
  // What follows `kymo run NAME --`, for its help, where there is no bundle.
  std::string_view run_arguments{};
};

// A runtime, by its place in the table; the first is that of plain processes.
enum class Kind : std::uint8_t { process };

// Every runtime that there is. Threads: any. Cost: none.
std::span<const RuntimeRow> runtime_table();
const RuntimeRow& row_of(Kind kind);
std::string_view name_of(Kind kind);
// None: no runtime has this name.
std::optional<Kind> kind_named(std::string_view name);
// "process, runc and podman", for messages. `containers`: without that of plain processes.
std::string runtime_names(bool containers = false);

// All runtimes of the table, each made once.
// Threads: any. Ownership: owns them.
class Runtimes {
 public:
  explicit Runtimes(const RuntimeSettings& settings);
  [[nodiscard]] Runtime& of(Kind kind) const { return *all_[static_cast<std::size_t>(kind)]; }

 private:
  std::vector<std::unique_ptr<Runtime>> all_;
};

}  // namespace kymo::runtime
