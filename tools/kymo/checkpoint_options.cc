#include "checkpoint_options.h"

#include <string>
#include <vector>

namespace kymo::cli {

void add_checkpoint_options(CLI::App& verb, v1::CheckpointOptions& options) {
  const auto flag = [&](const char* name, auto set, const char* help) {
    verb.add_flag_callback(
        name, [&options, set] { (options.*set)(true); }, help);
  };
  flag("--tcp-established", &v1::CheckpointOptions::set_tcp_established,
       "With its open TCP connections");
  flag("--shell-job", &v1::CheckpointOptions::set_shell_job,
       "Part of another process' session; one on a terminal is refused");
  flag("--file-locks", &v1::CheckpointOptions::set_file_locks,
       "A container with its file locks; processes always are");
  flag("--ext-unix-sk", &v1::CheckpointOptions::set_external_unix_sockets,
       "With connections to unix datagram sockets of processes that are not dumped");
  verb.add_option_function<std::vector<std::string>>(
          "--external",
          [&options](const std::vector<std::string>& mounts) {
            for (const std::string& mount : mounts) options.add_external(mount);
          },
          "A mount from outside, as CRIU's --external: mnt[PATH]:NAME, at a restore "
          "mnt[NAME]:PATH; repeatable")
      ->allow_extra_args(false);
  verb.add_option_function<unsigned>(
          "--log-level", [&options](unsigned level) { options.set_log_level(level); },
          "Of CRIU's log, 1 to 4; if nothing is said 3 at a dump and 4 at a restore, by which "
          "phases "
          "are found")
      ->check(CLI::Range(1U, 4U));
}

}  // namespace kymo::cli
