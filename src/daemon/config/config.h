#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/annotated_sink.h"
#include "kymo/profiler.h"
#include "kymo/result.h"
#include "kymo/sink.h"

namespace kymo::daemon {

// kymod's configuration, from its command line, environment and file of flags. The flags are
// described in daemon/config/flags.h.
struct Config {
  std::string socket = "/run/kymo/kymod.sock";
  std::string socket_group;  // empty: only the socket's owner may connect
  std::string http = "127.0.0.1:9418";
  std::string http_name;        // name of the page's host besides localhost; empty: none
  std::string http_token_file;  // empty: http-token in the state directory
  bool http_controls = false;   // the page may control the recorder
  bool http_profiles = false;   // the page may show `profiles`
  std::string state_dir = "/var/lib/kymo";
  // Directories in which requests may read and write besides the state directory; empty: all.
  std::vector<std::string> allowed_directories;
  std::string criu = "criu";                // a path, or a name to look up on PATH
  std::string criu_fallback;                // the same, used for what `criu` cannot do; empty: none
  std::chrono::seconds criu_timeout{3600};  // kymod kills a CRIU that takes longer
  std::string runc_root = "/run/runc";      // where runc keeps the state of containers
  std::vector<std::string> podman_flags;    // put before podman's verb
  std::string log_level = "info";
  std::vector<std::string> inside_words;  // --inside, as given
  bool inside = true;                     // look at CRIU, the target and the machine
  bool inside_pages = false;              // and at the memory that the kernel gives out
  bool inside_off_cpu = false;            // and keep the stacks of threads that wait
  bool timing = true;                     // --profiling: time the parts of each request
  int profiling_stacks = 0;  // samples a second of each CPU during dumps and restores; 0: none
  std::string profiles;      // the folder in which stack profiles are kept; empty: none are
  int profiles_rate = 49;    // samples a second of each CPU
  bool profiles_off_cpu = false;
  std::string profiles_pull;               // empty: nothing is pulled
  std::string profiles_pull_token;         // a file; empty: none
  std::string profiles_pull_ca;            // a file; empty: whom the system trusts
  int profiles_pull_every = 60;            // seconds
  std::vector<std::string> profiles_only;  // services (profiles/service.h); empty: all
  int profiles_keep_days = 7;              // 0: no limit
  std::uint64_t profiles_keep_bytes = std::uint64_t{1} << 30U;  // 0: no limit
  std::string otlp_endpoint;  // http://HOST[:PORT][/PATH] that gets their spans; empty: none
  bool profiling = true;
  std::vector<std::string> profiling_metrics;       // empty: all
  std::string profiling_log;                        // empty: no daemon-wide recording; -: the log
  std::optional<AnnotatedFormat> profiling_format;  // unset: TSV
  std::string profiling_ring;                       // empty: the ring is in private memory
  std::chrono::microseconds profiling_interval{1000};
  Pace profiling_pace = Pace::thrifty;
  bool profiling_realtime = true;  // a collector that only sleeps has SCHED_FIFO priority 1
  // Rotation of the daemon-wide recording (kymo::TsvOptions); 0: off.
  std::uint64_t profiling_log_rotate_bytes = 0;
  std::chrono::seconds profiling_log_rotate_after{0};
  std::uint64_t profiling_log_keep_bytes = 0;
  // Limits for the checkpoints below the state directory; 0: no limit
  // (daemon/stored/space_bound.h).
  std::uint64_t keep_bytes = 0;
  std::uint64_t keep_count = 0;
  // Limit for each of the two output files of a job; 0: no limit (daemon/stored/job_output.h).
  std::uint64_t job_output_bytes = std::uint64_t{256} << 20U;
  std::chrono::seconds profiling_keep{10};   // how far back a snapshot reaches
  std::vector<std::string> profiling_rules;  // conditions for a snapshot
};

struct HostPort {
  std::string host;
  std::uint16_t port = 0;  // 0: any free port
};

// Parses HOST:PORT, or [HOST]:PORT for IPv6.
// Errors: invalid_argument; the message says what is allowed.
Result<HostPort> parse_host_port(std::string_view text);

// Takes the value of --profiling-metrics: `all`, `none`, or names separated by commas.
// check_metric_names() checks later whether the names exist.
// Errors: invalid_argument: a name is empty.
Result<void> set_profiling_metrics(Config& config, std::string_view list);

// Takes the value of --profiling-metrics-format.
// Errors: invalid_argument; the message says what is allowed.
Result<void> set_profiling_format(Config& config, std::string_view name);

// Makes paths absolute and finds criu on PATH. Checks everything that can be checked without
// starting anything.
// Errors: the message names the option, its value and what is allowed.
Result<void> resolve_and_check(Config& config);

}  // namespace kymo::daemon
