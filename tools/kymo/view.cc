#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>

#include "analysis/find_recordings.h"
#include "browser.h"
#include "print.h"
#include "report/recording_view.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct ViewArguments {
  std::string run;
  std::uint16_t port = 0;
  bool open = false;
};

// The one recording that is meant.
Result<std::string> find_one(const std::string& path) {
  const Result<std::vector<std::string>> found = analysis::find_recordings(path);
  if (!found) return found.error();
  if (found->size() == 1) return found->front();
  std::string names;
  for (const std::string& one : *found) names += " " + one;
  return Error{Code::invalid_argument, "view " + path + ": name one of" + names};
}

void serve(Context& context, const ViewArguments& arguments) {
  const Result<std::string> path = find_one(arguments.run);
  if (!path) return fail(context, path.error());
  // Before the server's threads, so that the end is waited for here alone.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto view = report::RecordingView::open(*path, arguments.port);
  if (!view) return fail(context, view.error());
  std::cout << (*view)->url() << std::endl;  // for who reads it from a pipe
  std::cerr << "kymo: serving " << *path << " until Ctrl-C\n";
  if (arguments.open) {
    if (const Result<void> opened = open_in_browser((*view)->url()); !opened) {
      fail(context, opened.error());
    }
  }
  int signal = 0;
  sigwait(&signals, &signal);
}

}  // namespace

void add_view(CLI::App& app, Context& context) {
  CLI::App* view = app.add_subcommand(
      "view", "Serve a whole recording, of any length, to a browser on this machine");
  auto arguments = std::make_shared<ViewArguments>();
  view->fallthrough();
  view->add_option("RUN", arguments->run, "A recording, or a folder or checkpoint with one")
      ->required();
  view->add_option("--port", arguments->port, "Of loopback; 0: any free one")
      ->capture_default_str();
  view->add_flag("--open", arguments->open, "Open it in a browser");
  view->callback([&context, arguments] { serve(context, *arguments); });
}

}  // namespace kymo::cli
