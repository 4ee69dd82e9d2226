#include "checkpoints/checkpoint_options.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/criu/drive/options.h"
#include "print.h"

namespace kymo::cli {

namespace {

using Options = v1::CheckpointOptions;

void add_flag(CLI::App& verb, Options& options, const char* name, void (Options::*set)(bool),
              const char* help) {
  verb.add_flag_callback(
      name, [&options, set] { (options.*set)(true); }, help);
}

// Adds an option whose value is the name of a value of an enum of criu/options.h, from 1 to `last`.
template <class Enum, class Set>
void add_choice(CLI::App& verb, const char* name, Enum last, Set set, const char* help) {
  std::vector<std::string> names;
  for (int value = 1; value <= static_cast<int>(last); ++value) {
    names.emplace_back(criu::name_of(static_cast<Enum>(value)));
  }
  verb.add_option_function<std::string>(
          name,
          [names, set](const std::string& value) {
            set(static_cast<int>(std::find(names.begin(), names.end(), value) - names.begin()) + 1);
          },
          help)
      ->check(CLI::IsMember(names));
}

}  // namespace

void add_checkpoint_options(CLI::App& verb, Options& options) {
  const auto flag = [&](const char* name, auto set, const char* help) {
    add_flag(verb, options, name, set, help);
  };
  flag("--tcp-established", &Options::set_tcp_established, "Include open TCP connections");
  flag("--tcp-close", &Options::set_tcp_close,
       "Do not keep open TCP connections: the restored process finds them closed");
  flag("--shell-job", &Options::set_shell_job,
       "Allow a process in the session of another process, but not one on a terminal");
  flag("--file-locks", &Options::set_file_locks,
       "Include the file locks of a container (those of a process are always included)");
  flag("--ext-unix-sk", &Options::set_external_unix_sockets,
       "Allow connections to unix datagram sockets of processes that are not dumped");
  verb.add_option_function<std::vector<std::string>>(
          "--external",
          [&options](const std::vector<std::string>& mounts) {
            for (const std::string& mount : mounts) options.add_external(mount);
          },
          "External mount, as for CRIU's --external: mnt[PATH]:NAME for a dump, mnt[NAME]:PATH for "
          "a restore (may be repeated)")
      ->allow_extra_args(false);
  verb.add_option_function<unsigned>(
          "--log-level", [&options](unsigned level) { options.set_log_level(level); },
          "Level of CRIU's log, 1 to 4 (default: 3 for a dump, 4 for a restore; the phases need "
          "these levels)")
      ->check(CLI::Range(1U, 4U));
  add_choice(
      verb, "--manage-cgroups", criu::Cgroups::ignore,
      [&options](int value) { options.set_cgroups(static_cast<v1::CgroupsMode>(value)); },
      "Save and restore the cgroups of a process, as CRIU's --manage-cgroups does");
  add_choice(
      verb, "--file-validation", criu::FileValidation::build_id,
      [&options](int value) {
        options.set_file_validation(static_cast<v1::FileValidation>(value));
      },
      "How the restore checks that a program or library is still the one of the dump (default: "
      "buildid)");
}

void add_restore_only_options(CLI::App& verb, Options& options) {
  verb.add_option_function<std::vector<std::string>>(
          "--inherit-fd",
          [&options](const std::vector<std::string>& files) {
            for (const std::string& file : files) {
              const std::size_t equals = file.find('=');
              if (equals == 0 || equals == std::string::npos || equals + 1 == file.size()) {
                throw CLI::ValidationError("--inherit-fd", file + " is not RESOURCE=FILE");
              }
              v1::InheritedFile& one = *options.add_inherit_fd();
              one.set_resource(file.substr(0, equals));
              one.set_path(absolute_path(file.substr(equals + 1)));
            }
          },
          "Give the process this file instead of one that it had; RESOURCE is that of CRIU's "
          "--inherit-fd: the old path without the first slash, pipe:[INODE], tty[RDEV:DEV] or "
          "file[MOUNT:INODE] (may be repeated; only root may use it)")
      ->allow_extra_args(false)
      ->option_text("RESOURCE=FILE");
}

void add_dump_only_options(CLI::App& verb, Options& options) {
  verb.add_option_function<std::uint64_t>(
          "--ghost-limit",
          [&options](std::uint64_t bytes) {
            options.set_ghost_limit(static_cast<std::uint32_t>(bytes));
          },
          "Copy open files that were deleted into the images up to this size, such as 64M "
          "(default: 1M)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{UINT32_MAX}))
      ->option_text("SIZE (below 4G)");
  add_flag(verb, options, "--link-remap", &Options::set_link_remap,
           "Allow CRIU to make a link to an open file whose name was deleted but which has others");
  add_flag(verb, options, "--skip-in-flight", &Options::set_skip_in_flight,
           "Leave out TCP connections that the process has not accepted yet");
  add_choice(
      verb, "--network-lock", criu::NetworkLock::skip,
      [&options](int value) { options.set_network_lock(static_cast<v1::NetworkLock>(value)); },
      "How CRIU keeps packets away from TCP connections during the dump (default: iptables)");
}

void hide_options_of_processes(CLI::App& verb) {
  for (const char* name : {"--tcp-close", "--external", "--log-level", "--manage-cgroups",
                           "--file-validation", "--inherit-fd", "--root", "--ghost-limit",
                           "--link-remap", "--skip-in-flight", "--network-lock", "--sync",
                           "--stream", "--no-stream", "--compression", "--compression-level"}) {
    if (CLI::Option* option = verb.get_option_no_throw(name)) option->group("");
  }
}

}  // namespace kymo::cli
