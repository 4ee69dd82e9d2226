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

#include "checkpoint/criu/drive/client.h"
#include "checkpoint/runtimes/shared/runtime.h"
#include "kymo/result.h"

namespace kymo::runtime {

// Settings for all runtimes. Each runtime uses those that it needs.
struct RuntimeSettings {
  // For plain processes: criu.called counts the calls, criu.timeout limits each dump and restore.
  criu::ClientOptions criu;
  // Called when a plain process that a runtime made has ended (process/process_runtime.h).
  std::function<void(const ProcessId& process, int wait_status)> exited;
  // First on PATH, where container runtimes look for criu.
  std::string criu_folder;
  // The timeout of each command, or dump and restore, of a container runtime. 0: none.
  std::chrono::milliseconds timeout{0};
  std::string runc_root;
  std::string state_dir;  // for what a runtime remembers
  std::vector<std::string> podman_flags;
};

// One runtime, and what it can do. Nothing outside of this folder asks which runtime it is.
struct RuntimeRow {
  // The name that users type and that checkpoints store, and the name of the program. In capitals
  // it is the name of a value of the API's enum Runtime. A test compares them.
  std::string_view name;
  std::unique_ptr<Runtime> (*make)(const RuntimeSettings& settings) = nullptr;
  // Whether it has containers. Otherwise it has plain processes, whose pids and paths are those of this machine.
  bool containers = true;
  // Whether its images can pass through kymod, because kymod gives CRIU its command line. So they can be compressed.
  bool streams = false;
  // Whether its images are on their disk before the process ends, if that is asked.
  bool syncs = false;
  bool pre_dumps = false;
  // The members below are only for container runtimes.
  Result<OciRuntime> (*oci_runtime)(const RuntimeSettings& settings) = nullptr;
  // Whether containers are started and restored from a bundle, with an id that the user chooses.
  bool has_bundles = false;
  // Whether it restores a container with a user namespace: CRIU reads the images where kymod keeps them, and kymod can let
  // the root of that namespace read them there. podman's and Docker's own files it could not read (docs/runtimes.md).
  bool restores_user_namespaces = false;
  // Whether containerd starts CRIU for it, and not kymod.
  bool by_containerd = false;
  // What the runtime makes anew in a restore of what config.json names (preflight/host_names.h).
  std::string_view renews{};
  // What a dump writes beside the images, about, of a container with this bundle. Null: nothing.
  std::uint64_t (*bytes_beside_images)(const std::string& bundle) = nullptr;
  // If there are no bundles: what follows `kymo run NAME --`, for the help.
  std::string_view run_arguments{};
};

// The index of a runtime in the table. The first one is that of plain processes.
enum class Kind : std::uint8_t {};

// Returns all runtimes.
// Threads: any.
// Cost:    none.
std::span<const RuntimeRow> runtime_table();
const RuntimeRow& row_of(Kind kind);
std::string_view name_of(Kind kind);
// Returns nothing if no runtime has this name.
std::optional<Kind> kind_named(std::string_view name);

// A container of a runtime.
struct ContainerName {
  Kind kind{};
  std::string name;
};
// What a text such as "podman:web" names; nothing if there is no such container runtime, or no name.
std::optional<ContainerName> container_name_in(const std::string& text);

// Returns a list for messages: "process, runc, podman and containerd". `containers`: only the
// container runtimes.
std::string runtime_names(bool containers = false);

// Makes and holds one runtime of each row of the table.
//
// Threads:   any.
// Ownership: owns the runtimes.
class Runtimes {
 public:
  explicit Runtimes(const RuntimeSettings& settings);
  [[nodiscard]] Runtime& of(Kind kind) const { return *all_[static_cast<std::size_t>(kind)]; }

 private:
  std::vector<std::unique_ptr<Runtime>> all_;
};

}  // namespace kymo::runtime
