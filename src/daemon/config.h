#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/profiler.h"
#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo::daemon {

// What kymod is told by its command line and environment. The defaults are those of the flags.
struct Config {
  std::string socket = "/run/kymo/kymod.sock";
  std::string socket_group;  // empty: the socket's owner alone may connect
  std::string http = "127.0.0.1:9418";
  std::string http_name;        // another that the page is served under; empty: none
  std::string http_token_file;  // empty: http-token below the state directory
  bool http_controls = false;   // the page may do something to the recorder
  std::string state_dir = "/var/lib/kymo";
  // Where requests may read and write besides the state directory; empty: anywhere.
  std::vector<std::string> allowed_directories;
  std::string criu = "criu";                // a path, or a name that is looked up on PATH
  std::string criu_fallback;                // the same, for what that one cannot do; empty: none
  std::chrono::seconds criu_timeout{3600};  // a CRIU that takes longer hangs: it is killed
  std::string runc_root = "/run/runc";      // where runc keeps its containers' state
  std::vector<std::string> podman_flags;    // put before podman's verb
  std::string log_level = "info";
  bool timing = true;         // --profiling: the parts of each request are timed
  std::string otlp_endpoint;  // http://HOST[:PORT][/PATH] that their spans go to; empty: nowhere
  bool profiling = true;
  std::vector<std::string> profiling_metrics;       // empty: all
  std::string profiling_log;                        // empty: no daemon-wide recording; -: the log
  std::optional<AnnotatedFormat> profiling_format;  // none: TSV
  std::string profiling_ring;                       // empty: the ring is in private memory
  std::chrono::microseconds profiling_interval{1000};
  Pace profiling_pace = Pace::thrifty;
  double profiling_max_spin_share = 0.15;  // of the interval, in precise pace
  int profiling_priority = 0;              // SCHED_FIFO priority of the collector; 0: see below
  bool profiling_realtime = true;          // the lowest one where it only sleeps
  int profiling_cpu = -1;                  // that the collector is pinned to; -1: any
  // The daemon-wide recording in parts (kymo::TsvOptions); 0: not.
  std::uint64_t profiling_log_rotate_bytes = 0;
  std::chrono::seconds profiling_log_rotate_after{0};
  std::uint64_t profiling_log_keep_bytes = 0;
  // Of the checkpoints below the state directory; 0: no bound (daemon/space_bound.h).
  std::uint64_t keep_bytes = 0;
  std::uint64_t keep_count = 0;
  // Of each of a job's two files of output; 0: no bound (daemon/job_output.h).
  std::uint64_t job_output_bytes = std::uint64_t{256} << 20U;
  std::chrono::seconds profiling_keep{10};   // how far back a snapshot reaches
  std::vector<std::string> profiling_rules;  // that make snapshots by themselves
};

struct HostPort {
  std::string host;
  std::uint16_t port = 0;  // 0: any free one
};

// HOST:PORT, or [HOST]:PORT for IPv6. Errors: invalid_argument, with what is allowed.
Result<HostPort> parse_host_port(std::string_view text);

// Takes the value of --profiling-metrics: names with commas between them, `all` or `none`; which
// names exist is checked later, against the registry. Errors: invalid_argument for an empty name.
Result<void> set_profiling_metrics(Config& config, std::string_view list);

// Takes the value of --profiling-metrics-format. Errors: invalid_argument, with what is allowed.
Result<void> set_profiling_format(Config& config, std::string_view name);

// Takes the value of --podman-flags: flags with blanks between them.
void set_podman_flags(Config& config, const std::string& flags);

// Makes paths absolute and finds criu on PATH, then checks everything that can be checked without
// starting anything. Errors name the option, its value and what is allowed.
Result<void> resolve_and_check(Config& config);

// The effective configuration, "name = value" a line, in the order of the flags.
std::vector<std::string> describe(const Config& config);

}  // namespace kymo::daemon
