#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "base/confine/helper.h"
#include "base/descriptors.h"
#include "base/file_limit.h"
#include "checkpoint/criu/drive/breakpoints.h"
#include "daemon/config/config.h"
#include "daemon/config/flags.h"
#include "daemon/serve/daemon.h"
#include "daemon/state/foreign.h"
#include "flags_file.h"
#include "kymo/version.h"
#include "kymod/flags.h"
#include "kymod/log.h"
#include "profiler/kept/keeper.h"
#include "profiler/stacks/collector.h"
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
               "kymod: --profiling-metrics: give metric names separated by commas, all or none. "
               "The metrics are:\n");
  std::string last;
  for (const kymo::Column& column : *columns) {
    if (column.metric->name == last) continue;
    last = column.metric->name;
    std::fprintf(stderr, "  %-32s %s\n", last.c_str(), column.metric->help.c_str());
  }
  return kUsage;
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
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of who writes it
}

int serve(Config config) {
  block_stop_signals();
  // The helper is forked first, while this process has read nothing and has no other thread.
  const auto helper = kymo::confine::Helper::start(kymo::daemon::foreign_readers());
  if (!helper) return fail(helper.error());
  kymo::raise_file_limit();  // each request, client and page needs some
  const bool without_breakpoints = kymo::criu::avoid_broken_breakpoints();
  kymo::begin_log(config.log_level);
  for (const std::string& line : kymo::daemon::describe(config)) spdlog::info("{}", line);
  if (without_breakpoints) {
    spdlog::info("hardware breakpoints do not work here, so CRIU is told not to use them");
  }
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
  CLI::App app(
      "Kymograph's daemon: it checkpoints and restores processes and containers, and records how.",
      "kymod");
  Config config;
  kymo::Result<void> good;
  app.set_version_flag("--version", "kymod " KYMO_VERSION);
  app.set_help_all_flag("--help-all", "Print the help with the advanced options, too, and exit");
  kymo::cli::add_flags_file(app, "KYMOD_CONFIG");
  kymo::add_flags(app, config, good);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForAllHelp&) {
    std::fputs(kymo::help_with_advanced(app).c_str(), stdout);
    return 0;
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    kymo::print_line("kymod: " + kymo::cli::explain_usage(error, app));
    return kUsage;
  }
  if (good) good = kymo::daemon::resolve_and_check(config);
  if (good) good = kymo::daemon::check_metric_names(config);
  if (!good) return fail(good.error());
  return serve(std::move(config));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == kymo::stacks::kCollectorArgument) {
    return kymo::stacks::collect(STDIN_FILENO, STDOUT_FILENO);
  }
  if (argc == 2 && std::string_view(argv[1]) == kymo::profiles::kKeeperArgument) {
    return kymo::profiles::keep(STDIN_FILENO, STDOUT_FILENO);
  }
  kymo::open_standard_descriptors();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    kymo::print_line(std::string("kymod: ") + error.what());
    return kFailed;
  }
}
