#include "checkpoint/criu/drive/options.h"

#include <algorithm>
#include <array>

namespace kymo::criu {
namespace {

// Each in the order of its enumeration.
constexpr std::array<std::string_view, 7> kCgroups{"",     "none",   "props", "soft",
                                                   "full", "strict", "ignore"};
constexpr std::array<std::string_view, 4> kLocks{"", "iptables", "nftables", "skip"};
constexpr std::array<std::string_view, 3> kValidations{"", "filesize", "buildid"};

}  // namespace

std::string_view name_of(Cgroups mode) {
  return kCgroups.at(static_cast<std::size_t>(mode));
}
std::string_view name_of(NetworkLock method) {
  return kLocks.at(static_cast<std::size_t>(method));
}
std::string_view name_of(FileValidation method) {
  return kValidations.at(static_cast<std::size_t>(method));
}

Cgroups cgroups_named(std::string_view name) {
  const auto* const found = std::find(kCgroups.begin(), kCgroups.end(), name);
  return found == kCgroups.end() ? Cgroups::unset : static_cast<Cgroups>(found - kCgroups.begin());
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
  // CRIU's own choice would make cgroups anew that are gone, also those of others below the process's own.
  const Cgroups cgroups = options.cgroups == Cgroups::unset ? Cgroups::ignore : options.cgroups;
  arguments.push_back("--manage-cgroups=" + std::string(name_of(cgroups)));
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
