#include "criu/options.h"

#include <algorithm>
#include <array>

#include "criu/rpc.pb.h"

namespace kymo::criu {
namespace {

// In the order of Cgroups, with the values of CRIU's criu_cg_mode.
struct CgroupsMode {
  std::string_view name;
  wire::CgroupsMode value;
};
constexpr std::array kCgroups{
    CgroupsMode{"", wire::CG_DEFAULT},     CgroupsMode{"none", wire::CG_NONE},
    CgroupsMode{"props", wire::CG_PROPS},  CgroupsMode{"soft", wire::CG_SOFT},
    CgroupsMode{"full", wire::CG_FULL},    CgroupsMode{"strict", wire::CG_STRICT},
    CgroupsMode{"ignore", wire::CG_IGNORE}};

struct LockMethod {
  std::string_view name;
  wire::NetworkLock value;
};
// In the order of FileValidation.
constexpr std::array<std::string_view, 3> kValidations{"", "filesize", "buildid"};

constexpr std::array kLocks{LockMethod{"", wire::IPTABLES}, LockMethod{"iptables", wire::IPTABLES},
                            LockMethod{"nftables", wire::NFTABLES}, LockMethod{"skip", wire::SKIP}};

const CgroupsMode& row_of(Cgroups mode) {
  return kCgroups.at(static_cast<std::size_t>(mode));
}
const LockMethod& row_of(NetworkLock method) {
  return kLocks.at(static_cast<std::size_t>(method));
}

}  // namespace

std::string_view name_of(Cgroups mode) {
  return row_of(mode).name;
}
std::string_view name_of(NetworkLock method) {
  return row_of(method).name;
}
std::string_view name_of(FileValidation method) {
  return kValidations.at(static_cast<std::size_t>(method));
}

Cgroups cgroups_named(std::string_view name) {
  const auto* const row = std::find_if(kCgroups.begin(), kCgroups.end(),
                                       [&](const CgroupsMode& mode) { return mode.name == name; });
  return row == kCgroups.end() ? Cgroups::unset : static_cast<Cgroups>(row - kCgroups.begin());
}

void set(const Options& options, wire::Options& message) {
  if (options.tcp_established) message.set_tcp_established(true);
  if (options.shell_job) message.set_shell_job(true);
  for (const std::string& external : options.external) message.add_external(external);
  if (options.log_level != 0) message.set_log_level(options.log_level);
  if (options.external_unix_sockets) message.set_ext_unix_sk(true);
  if (!options.root.empty()) message.set_root(options.root);
  if (options.ghost_limit != 0) message.set_ghost_limit(options.ghost_limit);
  if (options.link_remap) message.set_link_remap(true);
  if (options.tcp_close) message.set_tcp_close(true);
  if (options.skip_in_flight) message.set_tcp_skip_in_flight(true);
  if (options.cgroups != Cgroups::unset) {
    message.set_manage_cgroups_mode(row_of(options.cgroups).value);
  }
  if (options.network_lock != NetworkLock::unset) {
    message.set_network_lock(row_of(options.network_lock).value);
  }
  int number = kFirstInherited;
  for (const InheritedFile& file : options.inherited) {
    wire::InheritFd& inherited = *message.add_inherit_fd();
    inherited.set_key(file.resource);
    inherited.set_fd(number++);
  }
}

std::vector<std::string> arguments_of(const Options& options) {
  std::vector<std::string> arguments;
  const auto flag = [&](bool on, const char* name) {
    if (on) arguments.emplace_back(name);
  };
  const auto value = [&](bool on, const char* name, std::string_view of) {
    if (on) arguments.insert(arguments.end(), {name, std::string(of)});
  };
  flag(options.tcp_established, "--tcp-established");
  flag(options.shell_job, "--shell-job");
  for (const std::string& external : options.external) value(true, "--external", external);
  if (options.log_level != 0) arguments.push_back("-v" + std::to_string(options.log_level));
  flag(options.external_unix_sockets, "--ext-unix-sk");
  value(!options.root.empty(), "--root", options.root);
  value(options.ghost_limit != 0, "--ghost-limit", std::to_string(options.ghost_limit));
  flag(options.link_remap, "--link-remap");
  flag(options.tcp_close, "--tcp-close");
  flag(options.skip_in_flight, "--skip-in-flight");
  if (options.cgroups != Cgroups::unset) {
    arguments.push_back("--manage-cgroups=" + std::string(name_of(options.cgroups)));
  }
  value(options.network_lock != NetworkLock::unset, "--network-lock",
        name_of(options.network_lock));
  value(options.file_validation != FileValidation::unset, "--file-validation",
        name_of(options.file_validation));
  int number = kFirstInherited;
  for (const InheritedFile& file : options.inherited) {
    value(true, "--inherit-fd", "fd[" + std::to_string(number++) + "]:" + file.resource);
  }
  return arguments;
}

std::vector<std::string_view> given(const Options& options) {
  std::vector<std::string_view> names;
  const auto add = [&](bool on, std::string_view name) {
    if (on) names.push_back(name);
  };
  add(options.tcp_established, "--tcp-established");
  add(options.shell_job, "--shell-job");
  add(options.file_locks, "--file-locks");
  add(options.external_unix_sockets, "--ext-unix-sk");
  add(!options.external.empty(), "--external");
  add(!options.root.empty(), "--root");
  add(options.log_level != 0, "--log-level");
  add(options.ghost_limit != 0, "--ghost-limit");
  add(options.link_remap, "--link-remap");
  add(options.tcp_close, "--tcp-close");
  add(options.skip_in_flight, "--skip-in-flight");
  add(options.cgroups != Cgroups::unset, "--manage-cgroups");
  add(options.network_lock != NetworkLock::unset, "--network-lock");
  add(options.file_validation != FileValidation::unset, "--file-validation");
  add(!options.inherited.empty(), "--inherit-fd");
  return names;
}

}  // namespace kymo::criu
