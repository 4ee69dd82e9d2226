// kymo-view: the program that `kymo view` starts.

#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "browser.h"
#include "kymo/version.h"
#include "lens/analysis/find_recordings.h"
#include "lens/report/human.h"
#include "lens/view/recording_view.h"

namespace kymo {
namespace {

struct Arguments {
  std::string run;
  std::uint16_t port = 0;
  bool open = false;
};

void say(const std::string& text) {
  std::fprintf(stderr, "kymo: %s\n", report::printable(text).c_str());
}

int fail(const Error& error) {
  say(error.message);
  return 1;
}

// The recording at `path`. It is an error if there are several.
Result<std::string> find_one(const std::string& path) {
  const Result<std::vector<std::string>> found = analysis::find_recordings(path);
  if (!found) return found.error();
  if (found->size() == 1) return found->front();
  std::string names;
  for (const std::string& one : *found) names += " " + one;
  return Error{Code::invalid_argument, "view " + path + ": name one of" + names};
}

int serve(const Arguments& arguments) {
  const Result<std::string> path = find_one(arguments.run);
  if (!path) return fail(path.error());
  const auto view = view::RecordingView::open(*path);
  if (!view) return fail(view.error());
  // Block the signals before the server starts its threads, so that only this thread receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (const Result<void> serving = (*view)->serve(arguments.port); !serving) {
    return fail(serving.error());
  }
  std::cout << (*view)->url() << std::endl;  // flushed, for a reader at the end of a pipe
  say("serving " + *path + " until Ctrl-C");
  int exit_code = 0;
  if (arguments.open) {
    if (const Result<void> opened = cli::open_in_browser((*view)->url_once()); !opened) {
      exit_code = fail(opened.error());
    }
  }
  int signal = 0;
  sigwait(&signals, &signal);
  return exit_code;
}

int run(int argc, char** argv) {
  CLI::App app("Show a recording of any length in a browser on this machine", "kymo view");
  Arguments arguments;
  app.set_version_flag("--version", "kymo " KYMO_VERSION);
  app.add_option("RUN", arguments.run, "A recording, or a folder or checkpoint that holds one")
      ->required();
  app.add_option("--port", arguments.port, "Port on loopback (0: any free port)")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_flag("--open", arguments.open, "Open the page in a browser");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    say(std::string(error.what()) + " (see kymo view --help)");
    return 2;
  }
  return serve(arguments);
}

}  // namespace
}  // namespace kymo

int main(int argc, char** argv) {
  kymo::open_standard_descriptors();
  try {
    return kymo::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kymo: %s\n", error.what());
    return 1;
  }
}
