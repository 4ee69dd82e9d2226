#include "checkpoint/runtimes/table.h"

#include <array>

#include "checkpoint/runtimes/containerd/containerd_runtime.h"
#include "checkpoint/runtimes/docker/docker_runtime.h"
#include "checkpoint/runtimes/podman/podman_runtime.h"
#include "checkpoint/runtimes/podman/podman_shared_memory.h"
#include "checkpoint/runtimes/process/process_runtime.h"
#include "checkpoint/runtimes/runc/runc_runtime.h"

namespace kymo::runtime {
namespace {

std::unique_ptr<Runtime> make_process(const RuntimeSettings& all) {
  return make_process_runtime({.criu = all.criu, .exited = all.exited});
}

std::unique_ptr<Runtime> make_runc(const RuntimeSettings& all) {
  return make_runc_runtime({.root = all.runc_root,
                            .criu_folder = all.criu_folder,
                            .timeout = all.timeout,
                            .memory = all.state_dir.empty() ? "" : all.state_dir + "/runc-left"});
}

Result<OciRuntime> oci_of_runc(const RuntimeSettings& /*all*/) {
  return OciRuntime{"runc", ""};
}

Result<OciRuntime> oci_of_podman(const RuntimeSettings& all) {
  return oci_runtime_of_podman(all.podman_flags);
}

Result<OciRuntime> oci_of_containerd(const RuntimeSettings& /*all*/) {
  return oci_runtime_of_containerd();
}

Result<OciRuntime> oci_of_docker(const RuntimeSettings& /*all*/) {
  return oci_runtime_of_docker();
}

std::unique_ptr<Runtime> make_podman(const RuntimeSettings& all) {
  return make_podman_runtime(
      {.flags = all.podman_flags, .criu_folder = all.criu_folder, .timeout = all.timeout});
}

std::unique_ptr<Runtime> make_containerd(const RuntimeSettings& all) {
  return make_containerd_runtime({.timeout = all.timeout});
}

std::unique_ptr<Runtime> make_docker(const RuntimeSettings& all) {
  return make_docker_runtime({.timeout = all.timeout});
}

constexpr std::array<RuntimeRow, 5> kTable{{
    {.name = "process",
     .make = make_process,
     .containers = false,
     .streams = true,
     .syncs = true,
     .pre_dumps = true},
    {.name = "runc",
     .make = make_runc,
     .pre_dumps = true,
     .oci_runtime = oci_of_runc,
     .has_bundles = true,
     .restores_user_namespaces = true},
    {.name = "podman",
     .make = make_podman,
     .oci_runtime = oci_of_podman,
     .renews = kPodmanRenews,
     .bytes_beside_images = bytes_of_shared_memory,
     .run_arguments = "the arguments of podman run -d"},
    {.name = "containerd",
     .make = make_containerd,
     .oci_runtime = oci_of_containerd,
     .restores_user_namespaces = true,
     .by_containerd = true,
     .renews = kContainerdRenews,
     .run_arguments = "the image, then the command and its arguments"},
    {.name = "docker",
     .make = make_docker,
     .oci_runtime = oci_of_docker,
     .by_containerd = true,
     .renews = "root hook namespace",
     .run_arguments = "the arguments of docker run -d"},
}};

}  // namespace

std::span<const RuntimeRow> runtime_table() {
  return kTable;
}

const RuntimeRow& row_of(Kind kind) {
  return kTable.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(Kind kind) {
  return row_of(kind).name;
}

std::optional<Kind> kind_named(std::string_view name) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (name == kTable.at(i).name) return Kind{static_cast<std::uint8_t>(i)};
  }
  return std::nullopt;
}

std::optional<ContainerName> container_name_in(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return std::nullopt;
  const std::optional<Kind> kind = kind_named(text.substr(0, colon));
  if (!kind || !row_of(*kind).containers) return std::nullopt;
  return ContainerName{*kind, text.substr(colon + 1)};
}

std::string runtime_names(bool containers) {
  std::string names;
  for (std::size_t i = containers ? 1 : 0; i < kTable.size(); ++i) {
    const bool last = i + 1 == kTable.size();
    names += names.empty() ? "" : last ? " and " : ", ";
    names += kTable.at(i).name;
  }
  return names;
}

Runtimes::Runtimes(const RuntimeSettings& settings) {
  for (const RuntimeRow& row : kTable) all_.push_back(row.make(settings));
}

}  // namespace kymo::runtime
