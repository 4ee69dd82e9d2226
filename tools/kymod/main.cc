#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "confine/helper.h"
#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/foreign.h"
#include "flags_file.h"
#include "kymo/version.h"
#include "kymod/log.h"
#include "usage.h"

namespace {

using kymo::daemon::Config;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int fail(const kymo::Error& error) {
  kymo::print_line("kymod: " + error.message);
  return error.code == kymo::Code::invalid_argument ? kUsage : kFailed;
}

// Whether --profiling-metrics has no value, which asks for the list of choices. CLI11 would take
// the next flag for its value.
bool asks_for_choices(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--profiling-metrics=") return true;
    if (arg == "--profiling-metrics" && (i + 1 == argc || *argv[i + 1] == '\0')) return true;
  }
  return false;
}

int print_choices() {
  const auto columns = kymo::daemon::available_columns(Config{});
  if (!columns) return fail(columns.error());
  std::fprintf(stderr,
               "kymod: --profiling-metrics: name metrics with commas between them, all or none; "
               "there are:\n");
  std::string last;
  for (const kymo::Column& column : *columns) {
    if (column.metric->name == last) continue;
    last = column.metric->name;
    std::fprintf(stderr, "  %-32s %s\n", last.c_str(), column.metric->help.c_str());
  }
  return kUsage;
}

template <class Rep, class Period>
void add_seconds(CLI::App& app, const std::string& name,
                 std::chrono::duration<Rep, Period>& seconds, const std::string& help) {
  app.add_option_function<long long>(
         name, [&seconds](long long value) { seconds = std::chrono::duration<Rep, Period>(value); },
         help)
      ->default_str(std::to_string(seconds.count()));
}

void add_flight_recorder_flags(CLI::App& app, Config& config) {
  app.add_option("--profiling-log-rotate-bytes", config.profiling_log_rotate_bytes,
                 "Begin a next part of the daemon-wide recording at this size; 0: never")
      ->capture_default_str();
  add_seconds(app, "--profiling-log-rotate-after", config.profiling_log_rotate_after,
              "Begin a next part when one is so many seconds old; 0: never");
  app.add_option(
         "--profiling-log-keep-bytes", config.profiling_log_keep_bytes,
         "Remove the oldest parts, of earlier starts too, beyond so many bytes in all; 0: never")
      ->capture_default_str();
  add_seconds(app, "--profiling-keep", config.profiling_keep,
              "Seconds that a snapshot can reach back (kymo snapshot, SIGUSR1)");
  app.add_option("--profiling-rule", config.profiling_rules,
                 "Take a snapshot when this becomes true: 'frozen_time_us > 500000'; repeatable")
      ->allow_extra_args(false);
}

void add_keep_flags(CLI::App& app, Config& config) {
  app.add_option("--keep-bytes", config.keep_bytes,
                 "Delete the oldest checkpoints below the state directory beyond so many bytes of "
                 "images, such as 10GiB, but never the newest of a job; 0: never")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("0");
  app.add_option("--keep-count", config.keep_count,
                 "The same beyond so many checkpoints of a job; 0: never")
      ->capture_default_str();
  app.add_option("--job-output-bytes", config.job_output_bytes,
                 "Keep at most so many bytes of a job's stdout, and of its stderr, the newest; "
                 "0: all")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("256MiB");
}

void add_flags(CLI::App& app, Config& config, std::string& metrics, std::string& format,
               long long& rate_us) {
  app.set_version_flag("--version", "kymod " KYMO_VERSION);
  app.add_option("--socket", config.socket, "Unix socket of the API")
      ->envname("KYMO_SOCKET")
      ->capture_default_str();
  app.add_option("--socket-group", config.socket_group, "Group whose members may connect as well");
  app.add_option("--http", config.http,
                 "HOST:PORT of the page, /metrics and /healthz; port 0: any free one")
      ->envname("KYMO_HTTP")
      ->capture_default_str();
  app.add_option("--http-name", config.http_name,
                 "A name besides localhost that the page is served under, as browsers have it");
  app.add_option(
      "--http-token-file", config.http_token_file,
      "The page's token, of mode 0600 or 0640; made where it is not there (http-token in "
      "the state directory)");
  app.add_flag("--http-controls", config.http_controls,
               "Let the page take snapshots, and start, stop and set the recorder; without this it "
               "only reads");
  app.add_option("--state-dir", config.state_dir, "Where jobs and checkpoints are kept")
      ->envname("KYMO_STATE_DIR")
      ->capture_default_str();
  app.add_option("--allow-directory", config.allowed_directories,
                 "A directory that requests may name besides the state directory; repeatable; "
                 "without it they may name any")
      ->allow_extra_args(false);
  app.add_option("--criu", config.criu, "The criu to use: a path, or a name on PATH")
      ->envname("KYMO_CRIU")
      ->capture_default_str();
  app.add_option("--criu-fallback", config.criu_fallback,
                 "A second criu, used where the first is too old for the kernel, the container or "
                 "the images")
      ->envname("KYMO_CRIU_FALLBACK");
  add_seconds(app, "--criu-timeout", config.criu_timeout,
              "Seconds after which a dump or restore is ended: CRIU hangs");
  app.add_option("--runc-root", config.runc_root, "Where runc keeps its containers' state")
      ->capture_default_str();
  app.add_option_function<std::string>(
      "--podman-flags",
      [&config](const std::string& flags) { kymo::daemon::set_podman_flags(config, flags); },
      "Flags before podman's verb: --podman-flags='--cgroup-manager=cgroupfs --runtime runc'");
  add_keep_flags(app, config);
  kymo::cli::add_flags_file(app, "KYMOD_CONFIG");
  app.add_flag("--profiling,!--no-profiling", config.timing,
               "Time the parts of each request, for its checkpoint and its caller")
      ->envname("KYMO_PROFILING")
      ->default_str("true");
  app.add_option("--otlp-endpoint", config.otlp_endpoint,
                 "OpenTelemetry collector that each request's parts are sent to, as spans over "
                 "OTLP/HTTP: http://HOST[:PORT][/PATH]")
      ->envname("KYMO_OTLP_ENDPOINT");
  app.add_option("--profiling-metrics", metrics,
                 "What to record: names with commas between them, all or none; empty lists them")
      ->capture_default_str();
  app.add_option(
      "--profiling-metrics-log", config.profiling_log,
      "A daemon-wide recording besides those of each request, ending in .tsv or .tsv.zst; where "
      "that file exists, NAME-2.tsv and so on");
  app.add_option(
         "--profiling-metrics-format", format,
         "Of that recording: tsv, annotated (gVisor's), annotated-lossy (the same for logs, "
         "with --profiling-metrics-log - for the daemon's own)")
      ->capture_default_str();
  app.add_option("--profiling-ring", config.profiling_ring,
                 "A file for rows not yet written, so that they outlive a kill (kymo recover)");
  app.add_option("--profiling-metrics-rate-us", rate_us, "Microseconds between samples")
      ->capture_default_str();
  static const std::map<std::string, kymo::Pace> kPaces = {{"thrifty", kymo::Pace::thrifty},
                                                           {"precise", kymo::Pace::precise}};
  app.add_option_function<std::string>(
         "--profiling-pace",
         [&config](const std::string& name) { config.profiling_pace = kPaces.at(name); },
         "How the collector waits: thrifty sleeps, precise spins the last microseconds")
      ->check(CLI::IsMember({"thrifty", "precise"}))
      ->default_str("thrifty");
  app.add_option("--profiling-max-spin-share", config.profiling_max_spin_share,
                 "The longest that the precise pace spins before a sample, as a share of the time "
                 "between two")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--profiling-priority", config.profiling_priority,
                 "Real-time priority of the collector, 1 to 99; 0: 1 where the collector only "
                 "sleeps, else none")
      ->check(CLI::Range(0, 99))
      ->capture_default_str();
  app.add_flag("!--no-realtime", config.profiling_realtime,
               "Give the collector no real-time priority of itself: samples may be late on a busy "
               "machine");
  app.add_option("--profiling-cpu", config.profiling_cpu, "CPU to pin the collector to; -1: any")
      ->check(CLI::Range(-1, 1023))
      ->capture_default_str();
  add_flight_recorder_flags(app, config);
  app.add_option("--log-level", config.log_level, "What to log on stderr")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
}

kymo::Result<void> complete(Config& config, const std::string& metrics, const std::string& format,
                            long long rate_us) {
  config.profiling_interval = std::chrono::microseconds(rate_us);
  if (auto ok = kymo::daemon::set_profiling_metrics(config, metrics); !ok) return ok;
  if (auto ok = kymo::daemon::set_profiling_format(config, format); !ok) return ok;
  if (auto ok = kymo::daemon::resolve_and_check(config); !ok) return ok;
  return kymo::daemon::check_metric_names(config);
}

// Called before any thread starts: all threads inherit the blocked signals, and only Daemon::run()
// receives them.
void block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int serve(Config config) {
  block_stop_signals();
  // The helper is forked first, while this process has read nothing and has no other thread.
  const auto helper = kymo::confine::Helper::start(kymo::daemon::foreign_works());
  if (!helper) return fail(helper.error());
  kymo::begin_log(config.log_level);
  for (const std::string& line : kymo::daemon::describe(config)) spdlog::info("{}", line);
  auto daemon = kymo::daemon::Daemon::start(std::move(config), **helper);
  if (!daemon) {
    kymo::end_log();
    return fail(daemon.error());
  }
  const kymo::Result<void> stopped = (*daemon)->run();
  daemon->reset();
  kymo::end_log();
  return stopped ? 0 : fail(stopped.error());
}

int run(int argc, char** argv) {
  if (asks_for_choices(argc, argv)) return print_choices();
  CLI::App app("Kymograph's daemon: checkpoints and restores processes, and records how.", "kymod");
  Config config;
  std::string metrics = "all";
  std::string format = "tsv";
  long long rate_us = config.profiling_interval.count();
  add_flags(app, config, metrics, format, rate_us);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    kymo::print_line("kymod: " + kymo::cli::explain_usage(error, app, {}));
    return kUsage;
  }
  if (auto ok = complete(config, metrics, format, rate_us); !ok) return fail(ok.error());
  return serve(std::move(config));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    kymo::print_line(std::string("kymod: ") + error.what());
    return kFailed;
  }
}
