#include "daemon/config/flags.h"

#include <iterator>
#include <sstream>
#include <type_traits>

namespace kymo::daemon {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string on_or_off(bool on) {
  return on ? "on" : "off";
}

// The size as the flag takes it, without rounding.
std::string size_as_flag_value(std::uint64_t bytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
  const bool whole = bytes != 0 && bytes % kMiB == 0;
  return whole ? std::to_string(bytes / kMiB) + "MiB" : std::to_string(bytes);
}

std::string metrics_text(const Config& config) {
  if (!config.profiling_metrics.empty()) return joined(config.profiling_metrics, ",");
  return config.profiling ? "all" : "none";
}

std::string format_text(const Config& config) {
  if (!config.profiling_format) return "tsv";
  return *config.profiling_format == AnnotatedFormat::plain ? "annotated" : "annotated-lossy";
}

Result<void> set_pace(Config& config, std::string_view name) {
  config.profiling_pace = name == "precise" ? Pace::precise : Pace::thrifty;
  return {};
}

std::string pace_text(const Config& config) {
  return config.profiling_pace == Pace::precise ? "precise" : "thrifty";
}

Result<void> set_podman_flags(Config& config, std::string_view flags) {
  std::istringstream words{std::string(flags)};
  config.podman_flags.assign(std::istream_iterator<std::string>(words), {});
  return {};
}

std::string podman_flags_text(const Config& config) {
  return joined(config.podman_flags, " ");
}

std::vector<Flag> everyday_flags() {
  return {
      {"socket", &Config::socket, "Unix socket of the API", "KYMO_SOCKET"},
      {"socket-group", &Config::socket_group, "Group whose members may connect to the socket, too"},
      {"http", &Config::http,
       "HOST:PORT of the page, /metrics and /healthz (port 0: any free port)", "KYMO_HTTP"},
      {"http-token-file", &Config::http_token_file,
       "File with the token of the page, mode 0600 or 0640; kymod creates it if it does not exist "
       "(default: http-token in the state directory)"},
      {"http-controls", Flag::Switch{&Config::http_controls},
       "Allow the page to take snapshots, and to start, stop and change the recorder (default: the "
       "page only reads)"},
      {"state-dir", &Config::state_dir, "Directory in which kymod keeps jobs and checkpoints",
       "KYMO_STATE_DIR"},
      {"allow-directory", &Config::allowed_directories,
       "Directory that requests may use besides the state directory (may be repeated; default: any "
       "directory)"},
      {"criu", &Config::criu, "CRIU program to use: a path, or a name on PATH", "KYMO_CRIU"},
      {"criu-fallback", &Config::criu_fallback,
       "Second CRIU program, used if the first is too old for the kernel, the container or the "
       "images",
       "KYMO_CRIU_FALLBACK"},
      {"criu-timeout", &Config::criu_timeout,
       "Kill a CRIU that has not finished its dump or restore after this time, 1s to 24h"},
      {"podman-flags", Flag::Converted{set_podman_flags, podman_flags_text},
       "Options that kymod puts before podman's command: --podman-flags='--cgroup-manager=cgroupfs "
       "--runtime runc'"},
      {"keep-bytes", Flag::Bytes{&Config::keep_bytes},
       "Delete the oldest checkpoints in the state directory if their images have more than this "
       "many bytes, such as 10GiB; never delete the newest checkpoint of a job (0: no limit)"},
      {"keep-count", &Config::keep_count,
       "Delete the oldest checkpoints of a job in the state directory if it has more than this "
       "many (0: no limit)"},
      {"profiling", Flag::Switch{&Config::timing, true},
       "Measure the steps of each request, for checkpoint.json and for the caller",
       "KYMO_PROFILING"},
      {"inside", Flag::Words{&Config::inside_words, "on"},
       "Look at CRIU, the target, the disk and the machine during each dump and restore, and add "
       "what is seen to its recording (--no-inside: do not); --inside=pages,offcpu also looks at "
       "the memory that the kernel gives out, and keeps the stacks of threads that wait",
       "KYMO_INSIDE"},
      {"profiling-stacks", Flag::Rate{&Config::profiling_stacks, 99},
       "Take the stacks of CRIU and of the target during each dump and restore, this many times a "
       "second (19 to 999, without a number 99), and divide them by phases (default: off)",
       "KYMO_PROFILING_STACKS"},
      {"profiles", &Config::profiles,
       "Take the stacks of all processes all the time, and keep them in this folder (default: no "
       "profiles are kept; see kymo profiles)",
       "KYMO_PROFILES"},
      {"profiles-only", &Config::profiles_only,
       "With --profiles, keep only this: job:NAME, container:ID, process:NAME, cgroup:PATH, or a "
       "runtime and a container's name such as podman:web (may be repeated; default: all)"},
      {"profiles-pull", &Config::profiles_pull,
       "With --profiles, also pull the profiles of programs of Go that this file lists: lines NAME "
       "http://HOST:PORT, or pods of Kubernetes as JSON; or of the pods that the API of Kubernetes "
       "at this address lists (https://HOST:PORT)"},
      {.name = "profiles-keep-days",
       .target = &Config::profiles_keep_days,
       .help = "Keep this many days of profiles: remove those that were taken first (0: no limit)",
       .range = {0, 3650}},
      {"otlp-endpoint", &Config::otlp_endpoint,
       "OpenTelemetry collector to which kymod sends the scopes of each request as spans "
       "(OTLP/HTTP): http://HOST[:PORT][/PATH]",
       "KYMO_OTLP_ENDPOINT"},
      {"profiling-metrics", Flag::Converted{set_profiling_metrics, metrics_text},
       "Metrics to record: names separated by commas, all or none; an empty value lists the names"},
      {"profiling-metrics-log", &Config::profiling_log,
       "File of the daemon-wide recording, .tsv or .tsv.zst; if it exists, kymod writes to "
       "NAME-2.tsv and so on (default: none)"},
      {"profiling-metrics-rate-us", &Config::profiling_interval,
       "Interval between samples, in microseconds"},
      {"profiling-rule", &Config::profiling_rules,
       "Take a snapshot when this condition becomes true, such as 'frozen_time_us > 500000' (may "
       "be "
       "repeated)"},
      {.name = "log-level",
       .target = &Config::log_level,
       .help = "Lowest level of the messages that are logged on stderr",
       .choices = {"debug", "info", "warn", "error"}},
  };
}

std::vector<Flag> advanced_flags() {
  return {
      {"http-name", &Config::http_name,
       "Host name, besides localhost, under which browsers may open the page"},
      {"http-profiles", Flag::Switch{&Config::http_profiles},
       "Let the readers of the page see the profiles of --profiles, which name what all users run "
       "(default: the page does not show them)"},
      {"runc-root", &Config::runc_root,
       "Directory in which runc keeps the state of its containers"},
      {"job-output-bytes", Flag::Bytes{&Config::job_output_bytes},
       "Keep only this many bytes of each job's stdout, and of its stderr: the newest ones (0: "
       "keep "
       "all)"},
      {.name = "profiles-rate",
       .target = &Config::profiles_rate,
       .help = "Samples of each CPU a second for --profiles",
       .range = {19, 999}},
      {"profiles-off-cpu", Flag::Switch{&Config::profiles_off_cpu},
       "With --profiles, also keep where threads wait"},
      {"profiles-pull-token", &Config::profiles_pull_token,
       "A file with the token for the API of Kubernetes"},
      {"profiles-pull-ca", &Config::profiles_pull_ca,
       "A file with the certificates that the API of Kubernetes is checked with (default: those of "
       "the system)"},
      {.name = "profiles-pull-every",
       .target = &Config::profiles_pull_every,
       .help = "Pull the profiles of each program again after this time, 2s to 1h",
       .range = {2, 3600},
       .seconds = true},
      {"profiles-keep-bytes", Flag::Bytes{&Config::profiles_keep_bytes},
       "Remove the oldest profiles if all together have more than this many bytes (0: no limit)"},
      {"profiling-metrics-format", Flag::Converted{set_profiling_format, format_text},
       "Format of the daemon-wide recording: tsv, annotated (gVisor's format) or annotated-lossy "
       "(for log files; --profiling-metrics-log - writes to kymod's own log)"},
      {"profiling-ring", &Config::profiling_ring,
       "Ring file for rows that are not written yet, so that they survive if kymod is killed (see "
       "kymo recover; default: none)"},
      {.name = "profiling-pace",
       .target = Flag::Converted{set_pace, pace_text},
       .help = "How the collector waits for a tick: thrifty (it sleeps) or precise (it spins for "
               "the last microseconds)",
       .choices = {"thrifty", "precise"}},
      {"no-realtime", Flag::SwitchOff{&Config::profiling_realtime},
       "Give the collector no real-time priority by default; samples may then be late on a busy "
       "machine"},
      {"profiling-log-rotate-bytes", Flag::Bytes{&Config::profiling_log_rotate_bytes},
       "Begin a new part of the daemon-wide recording when a part has this many bytes (0: never)"},
      {"profiling-log-rotate-after", &Config::profiling_log_rotate_after,
       "Begin a new part when a part is this old, such as 1h (0: never)"},
      {"profiling-log-keep-bytes", Flag::Bytes{&Config::profiling_log_keep_bytes},
       "Remove the oldest parts, also those of earlier starts, if all parts together have more "
       "than "
       "this many bytes (0: never)"},
      {"profiling-keep", &Config::profiling_keep,
       "How far back a snapshot can reach (kymo snapshot, SIGUSR1), such as 30s"},
  };
}

}  // namespace

const std::vector<Flag>& flags() {
  static const std::vector<Flag> kFlags = [] {
    std::vector<Flag> all = everyday_flags();
    for (Flag& flag : advanced_flags()) {
      flag.advanced = true;
      all.push_back(std::move(flag));
    }
    return all;
  }();
  return kFlags;
}

std::string value_of(const Flag& flag, const Config& config) {
  const auto member_text = [&](auto member) -> std::string {
    const auto& value = config.*member;
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string>) {
      return value;
    } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      return joined(value, "; ");
    } else if constexpr (std::is_arithmetic_v<Value>) {
      return std::to_string(value);
    } else {
      return std::to_string(value.count());
    }
  };
  return std::visit(
      Overloaded{
          [&](const Flag::Switch& one) { return on_or_off(config.*one.member); },
          [&](const Flag::SwitchOff& one) { return on_or_off(!(config.*one.member)); },
          [&](const Flag::Bytes& bytes) { return size_as_flag_value(config.*bytes.member); },
          [&](const Flag::Rate& rate) -> std::string {
            return config.*rate.member == 0 ? "off" : std::to_string(config.*rate.member);
          },
          [&](const Flag::Words& words) -> std::string {
            const auto& given = config.*words.member;
            return given.empty() ? words.otherwise : joined(given, ",");
          },
          [&](const Flag::Converted& converted) { return converted.text(config); },
          member_text,
      },
      flag.target);
}

std::vector<std::string> describe(const Config& config) {
  std::vector<std::string> lines;
  for (const Flag& flag : flags()) {
    const std::string text = value_of(flag, config);
    lines.push_back(std::string(flag.name) + " = " + (text.empty() ? "(none)" : text));
  }
  return lines;
}

}  // namespace kymo::daemon
