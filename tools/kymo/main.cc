#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "flags_file.h"
#include "kymo/version.h"
#include "timing.h"
#include "verbs.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("Kymograph: a flight recorder for checkpoint/restore.", "kymo");
  kymo::cli::Context context;
  app.set_version_flag("--version", "kymo " KYMO_VERSION);
  app.add_option("--socket", context.socket, "Socket of kymod")
      ->envname("KYMO_SOCKET")
      ->capture_default_str();
  kymo::cli::add_flags_file(app, "KYMO_CONFIG");
  kymo::cli::add_timing_options(app, context);
  app.require_subcommand(1);
  app.fallthrough();
  kymo::cli::add_run(app, context);
  kymo::cli::add_adopt(app, context);
  kymo::cli::add_dump(app, context);
  kymo::cli::add_restore(app, context);
  kymo::cli::add_freeze(app, context);
  kymo::cli::add_ps(app, context);
  kymo::cli::add_attach(app, context);
  kymo::cli::add_kill(app, context);
  kymo::cli::add_checkpoints(app, context);
  kymo::cli::add_inspect(app, context);
  kymo::cli::add_delete(app, context);
  kymo::cli::add_history(app, context);
  kymo::cli::add_metrics(app, context);
  kymo::cli::add_report(app, context);
  kymo::cli::add_export(app, context);
  kymo::cli::add_check(app, context);
  kymo::cli::add_diff(app, context);
  kymo::cli::add_stats(app, context);
  kymo::cli::add_record(app, context);
  kymo::cli::add_recover(app, context);
  kymo::cli::add_watch(app, context);
  kymo::cli::add_snapshot(app, context);
  kymo::cli::add_progress(app, context);
  kymo::cli::add_web(app, context);
  kymo::cli::add_view(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ConfigError& error) {
    std::fprintf(stderr, "kymo: the file of flags: %s (see kymo --help)\n", error.what());
    return 2;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "kymo: %s (see kymo --help)\n", error.what());
    return 2;
  }
  return context.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that went away (`kymo ps | head -1`) ends in a failed write, not in a signal from
  // gRPC.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kymo: %s\n", error.what());
    return 1;
  }
}
