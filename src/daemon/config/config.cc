#include "daemon/config/config.h"

#include <grp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

#include "base/recording_name.h"
#include "checkpoint/runtimes/shared/command.h"
#include "checkpoint/runtimes/table.h"
#include "daemon/config/allowed_path.h"
#include "daemon/config/otlp_endpoint.h"
#include "profiler/kept/cgroup_rule.h"
#include "profiler/kept/keeper.h"
#include "profiler/kept/pull_targets.h"
#include "profiler/kept/service.h"
#include "recorder/sampling/history/rule.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// This file name stands for the daemon's own log (standard error).
constexpr std::string_view kLogStream = "-";

Error invalid(std::string message) {
  return Error{Code::invalid_argument, std::move(message)};
}

bool is_executable(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// Finds the criu that `option` names. `variable` is the environment variable that can name it, too.
Result<std::string> find_criu(const std::string& option, const std::string& variable,
                              const std::string& name) {
  if (name.empty()) return invalid(option + " is empty: name the criu program or its path");
  if (name.find('/') != std::string::npos) {
    std::string path = fs::absolute(name).lexically_normal();
    if (!is_executable(path)) {
      return Error{
          Code::not_found,
          option + " " + name +
              ": no such program, or it is not executable: install CRIU, or name its path"};
    }
    return path;
  }
  if (std::string found = runtime::on_path(name); !found.empty()) return found;
  return Error{
      Code::not_found,
      option + " " + name +
          ": not found on PATH: install CRIU (scripts/setup does), or name its path with " +
          option + " or " + variable};
}

Result<void> check_socket(const Config& config) {
  if (config.socket.size() >= sizeof(sockaddr_un::sun_path)) {
    return invalid("--socket " + config.socket + ": longer than the " +
                   std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                   " characters that a unix socket's path may have");
  }
  if (!config.socket_group.empty() && getgrnam(config.socket_group.c_str()) == nullptr) {
    return invalid("--socket-group " + config.socket_group +
                   ": no such group: create it, or name another");
  }
  return {};
}

Result<void> check_allowed_directories(const Config& config) {
  for (const std::string& folder : config.allowed_directories) {
    std::error_code error;
    if (folder.empty() || folder.front() != '/') {
      return invalid("--allow-directory " + folder + ": give an absolute path");
    }
    if (!fs::is_directory(folder, error)) {
      return Error{Code::not_found,
                   "--allow-directory " + folder + ": no such directory: create it first"};
    }
  }
  return {};
}

Result<void> check_criu_timeout(const Config& config) {
  constexpr std::chrono::seconds kMaxTimeout = std::chrono::hours(24);
  if (config.criu_timeout.count() >= 1 && config.criu_timeout <= kMaxTimeout) return {};
  return invalid("--criu-timeout " + std::to_string(config.criu_timeout.count()) +
                 ": must be 1 to " + std::to_string(kMaxTimeout.count()) + " seconds");
}

Result<void> check_otlp(const Config& config) {
  if (config.otlp_endpoint.empty()) return {};
  if (!config.timing) {
    return invalid("--otlp-endpoint " + config.otlp_endpoint +
                   ": there is nothing to send with --no-profiling: leave out one of them");
  }
  const Result<OtlpEndpoint> parsed = parse_otlp_endpoint(config.otlp_endpoint);
  return parsed ? Result<void>{} : parsed.error();
}

Result<void> check_ring(const Config& config) {
  const std::string& ring = config.profiling_ring;
  if (ring.empty()) return {};
  if (!config.profiling) {
    return invalid(
        "--profiling-ring " + ring +
        ": there is nothing to keep with --profiling-metrics=none: leave out one of them");
  }
  return own_place("--profiling-ring", ring);
}

Result<void> check_profiles(const Config& config) {
  for (const std::string& text : config.profiles_only) {
    if (runtime::container_name_in(text)) continue;
    constexpr std::string_view kCgroup = profiles::kOnlyCgroup;
    if (text.starts_with(kCgroup)) {
      if (profiles::cgroup_rule(text.substr(kCgroup.size()), profiles::cgroups_are_unified())) {
        continue;
      }
      return invalid("--profiles-only " + text +
                     ": give the folder of a cgroup below /sys/fs/cgroup, or its path as in "
                     "/proc/PID/cgroup");
    }
    const std::optional<profiles::Service> service = profiles::service_in(text);
    if (!service) {
      return invalid("--profiles-only " + text +
                     ": give job:NAME, container:ID, process:NAME, cgroup:PATH, or a runtime and a "
                     "container's name such as podman:web");
    }
    constexpr std::size_t kIdDigits = 12;
    if (service->kind == profiles::Service::Kind::container && service->name.size() != kIdDigits) {
      return invalid("--profiles-only " + text + ": give the first " + std::to_string(kIdDigits) +
                     " digits of the container's id");
    }
  }
  if (config.profiles.empty() && config.http_profiles) {
    return invalid("--http-profiles: kymod keeps no profiles: add --profiles DIR");
  }
  if (config.profiles.empty() &&
      (!config.profiles_only.empty() || config.profiles_off_cpu || !config.profiles_pull.empty())) {
    return invalid("--profiles-...: kymod keeps no profiles: add --profiles DIR");
  }
  if (!config.profiles_pull_token.empty() || !config.profiles_pull_ca.empty()) {
    if (!profiles::is_address(config.profiles_pull)) {
      return invalid(
          "--profiles-pull-token, --profiles-pull-ca: they are only for the API of Kubernetes: "
          "give its address with --profiles-pull");
    }
    if (!config.profiles_pull_token.empty() && !config.profiles_pull.starts_with("https://")) {
      return invalid(
          "--profiles-pull-token: http:// would send the token without encryption: give an "
          "address with https://");
    }
  }
  // One minute of a machine with many programs must have room.
  constexpr std::uint64_t kMin = std::uint64_t{1} << 20U;
  if (config.profiles_keep_bytes != 0 && config.profiles_keep_bytes < kMin) {
    return invalid("--profiles-keep-bytes " + std::to_string(config.profiles_keep_bytes) +
                   ": must be at least 1 MiB, or 0 (no limit)");
  }
  return {};
}

Result<void> check_flight_recorder(const Config& config) {
  if (config.profiling_keep.count() < 1 || config.profiling_keep > std::chrono::hours(1)) {
    return invalid("--profiling-keep " + std::to_string(config.profiling_keep.count()) +
                   ": must be 1 to 3600 seconds");
  }
  for (const std::string& rule : config.profiling_rules) {
    if (const Result<Rule> parsed = Rule::parse(rule); !parsed) {
      return invalid("--profiling-rule: " + parsed.error().message);
    }
  }
  if (!config.profiling && !config.profiling_rules.empty()) {
    return invalid(
        "--profiling-rule: there are no metrics with --profiling-metrics=none: leave out one of "
        "them");
  }
  return {};
}

Result<void> check_rotation(const Config& config) {
  const bool any = config.profiling_log_rotate_bytes != 0 ||
                   config.profiling_log_rotate_after.count() != 0 ||
                   config.profiling_log_keep_bytes != 0;
  if (any && config.profiling_log.empty()) {
    return invalid(
        "--profiling-log-...: there is nothing to rotate without --profiling-metrics-log: name a "
        "recording with it");
  }
  if (any && config.profiling_format) {
    return invalid(
        "--profiling-log-...: only a recording in TSV is rotated: leave out "
        "--profiling-metrics-format");
  }
  if (config.profiling_log_rotate_after.count() < 0) {
    return invalid("--profiling-log-rotate-after " +
                   std::to_string(config.profiling_log_rotate_after.count()) +
                   ": must be 0 (never) and more");
  }
  const std::uint64_t keep = config.profiling_log_keep_bytes;
  if (keep != 0 && config.profiling_log_rotate_bytes > keep / 2) {
    return invalid("--profiling-log-rotate-bytes " +
                   std::to_string(config.profiling_log_rotate_bytes) +
                   ": at most half of --profiling-log-keep-bytes " + std::to_string(keep));
  }
  return {};
}

Result<void> check_stacks(const Config& config) {
  constexpr int kMin = 19;
  constexpr int kMax = 999;
  const int rate = config.profiling_stacks;
  if (rate == 0 || (rate >= kMin && rate <= kMax)) return {};
  return invalid("--profiling-stacks=" + std::to_string(rate) + ": give " + std::to_string(kMin) +
                 " to " + std::to_string(kMax) + " samples of each CPU a second");
}

Result<void> check_profiling(const Config& config) {
  if (Result<void> ok = check_stacks(config); !ok) return ok;
  if (config.profiling_interval.count() <= 0) {
    return invalid("--profiling-metrics-rate-us " +
                   std::to_string(config.profiling_interval.count()) +
                   ": the interval between samples must be at least 1 microsecond");
  }
  if (Result<void> ok = check_flight_recorder(config); !ok) return ok;
  if (Result<void> ok = check_rotation(config); !ok) return ok;
  if (config.profiling_log.empty()) return {};
  const std::string& log = config.profiling_log;
  if (!config.profiling) {
    return invalid(
        "--profiling-metrics-log " + log +
        ": there is nothing to write with --profiling-metrics=none: leave out one of them");
  }
  if (log == kLogStream) {
    if (config.profiling_format) return {};
    return invalid(
        "--profiling-metrics-log -: kymod's log cannot hold plain TSV: choose "
        "--profiling-metrics-format annotated or annotated-lossy");
  }
  if (!config.profiling_format && !is_recording_name(log)) {
    return invalid("--profiling-metrics-log " + log +
                   ": the name must end in .tsv, or in .tsv.zst to be compressed");
  }
  const fs::path folder = fs::path(log).parent_path();
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return Error{Code::not_found, "--profiling-metrics-log " + log + ": the folder " +
                                      folder.string() + " does not exist: create it first"};
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return system_error(
        "--profiling-metrics-log " + log + ": the folder " + folder.string() + " cannot be written",
        errno);
  }
  return own_place("--profiling-metrics-log", log);
}

// What --inside asks for.
Result<void> resolve_inside(Config& config) {
  for (const std::string& given : config.inside_words) {
    const auto is = [&given](const auto&... words) { return ((given == words) || ...); };
    config.inside = !is("false", "off", "no", "0");
    std::string_view rest;
    if (config.inside && !is("true", "on", "yes", "1")) rest = given;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      if (word == "pages") {
        config.inside_pages = true;
      } else if (word == "offcpu") {
        config.inside_off_cpu = true;
      } else {
        return invalid("--inside=" + given + ": " + std::string(word) +
                       " is neither pages nor offcpu");
      }
    }
  }
  return {};
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  const std::string wanted = "--http " + std::string(text) + ": wanted HOST:PORT, ";
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return invalid(wanted + "such as 127.0.0.1:9418 or [::1]:9418");
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of("[]:") != std::string_view::npos) {
    return invalid(wanted + "an IPv6 address in brackets");
  }
  HostPort out{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc() || end != port.data() + port.size()) {
    return invalid(wanted + "the port from 0 (any free one) to 65535");
  }
  return out;
}

Result<void> set_profiling_metrics(Config& config, std::string_view list) {
  config.profiling = list != "none";
  config.profiling_metrics.clear();
  if (list == "all" || list == "none") return {};
  for (bool more = true; more;) {
    const std::size_t comma = list.find(',');
    if (comma == 0 || list.empty()) {
      return invalid("--profiling-metrics: an empty name in the list");
    }
    config.profiling_metrics.emplace_back(list.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
  }
  return {};
}

Result<void> set_profiling_format(Config& config, std::string_view name) {
  if (name == "tsv") {
    config.profiling_format.reset();
  } else if (name == "annotated") {
    config.profiling_format = AnnotatedFormat::plain;
  } else if (name == "annotated-lossy") {
    config.profiling_format = AnnotatedFormat::lossy;
  } else {
    return invalid("--profiling-metrics-format " + std::string(name) +
                   ": no such format; there are tsv, annotated and annotated-lossy");
  }
  return {};
}

Result<void> resolve_and_check(Config& config) {
  if (config.socket.empty()) return invalid("--socket is empty: name the path of the socket");
  if (config.state_dir.empty()) return invalid("--state-dir is empty: name a folder");
  config.socket = fs::absolute(config.socket).lexically_normal();
  config.state_dir = fs::absolute(config.state_dir).lexically_normal();
  if (config.http_token_file.empty()) config.http_token_file = config.state_dir + "/http-token";
  config.http_token_file = fs::absolute(config.http_token_file).lexically_normal();
  if (config.runc_root.empty()) return invalid("--runc-root is empty: name a folder");
  config.runc_root = fs::absolute(config.runc_root).lexically_normal();
  if (!config.profiling_log.empty() && config.profiling_log != kLogStream) {
    config.profiling_log = fs::absolute(config.profiling_log).lexically_normal();
  }
  if (!config.profiles.empty()) config.profiles = fs::absolute(config.profiles).lexically_normal();
  for (std::string* const path :
       {&config.profiles_pull, &config.profiles_pull_token, &config.profiles_pull_ca}) {
    if (path->empty() || profiles::is_address(*path)) continue;
    *path = fs::absolute(*path).lexically_normal();
  }
  if (!config.profiling_ring.empty()) {
    config.profiling_ring = fs::absolute(config.profiling_ring).lexically_normal();
  }
  if (Result<void> ok = resolve_inside(config); !ok) return ok;
  if (Result<void> ok = check_allowed_directories(config); !ok) return ok;
  if (Result<void> ok = check_socket(config); !ok) return ok;
  if (Result<HostPort> ok = parse_host_port(config.http); !ok) return ok.error();
  if (Result<void> ok = check_otlp(config); !ok) return ok;
  if (Result<void> ok = check_profiling(config); !ok) return ok;
  if (Result<void> ok = check_ring(config); !ok) return ok;
  if (Result<void> ok = check_profiles(config); !ok) return ok;
  Result<std::string> criu = find_criu("--criu", "KYMO_CRIU", config.criu);
  if (!criu) return criu.error();
  config.criu = *criu;
  if (!config.criu_fallback.empty()) {
    criu = find_criu("--criu-fallback", "KYMO_CRIU_FALLBACK", config.criu_fallback);
    if (!criu) return criu.error();
    config.criu_fallback = *criu;
  }
  return check_criu_timeout(config);
}

}  // namespace kymo::daemon
