#include "jobs/progress.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/json_text.h"
#include "lens/report/api_json.h"
#include "lens/report/human.h"
#include "lens/report/progress_line.h"
#include "print.h"

namespace kymo::cli {
namespace {

constexpr std::uint64_t kNoBarBeforeNs = 200'000'000;
constexpr std::size_t kUsualWidth = 80;
constexpr std::chrono::milliseconds kLastUpdateWithin{300};

std::size_t width_of_stderr() {
  return width_of_terminal(STDERR_FILENO).value_or(kUsualWidth);
}

std::string request_text(const v1::Progress& progress) {
  std::string what = progress.kind() == v1::Progress::RESTORE ? "restore " : "dump ";
  if (!progress.job().empty()) return what + progress.job();
  if (progress.pid() != 0) return what + std::to_string(progress.pid());
  const std::string& directory = progress.directory();
  return what + report::printable(directory.substr(directory.rfind('/') + 1));
}

std::string line_of(const v1::Progress& progress, std::size_t width) {
  report::ProgressLine line;
  line.what = request_text(progress);
  line.phase = progress.phase();
  line.done_bytes = progress.bytes_done();
  if (progress.has_bytes_total()) line.total_bytes = progress.bytes_total();
  line.bytes_per_second = progress.bytes_per_second();
  if (progress.has_remaining_ns()) line.remaining_ns = progress.remaining_ns();
  line.elapsed_ns = progress.elapsed_ns();
  return report::progress_line(line, width);
}

// The result of a finished request, for a person.
std::string outcome_of(const v1::Progress& progress) {
  std::string text = request_text(progress) + ": ";
  if (progress.state() != v1::Progress::SUCCEEDED) {
    return text + report::printable(progress.error());
  }
  return text + "done, " + bytes_text(progress.bytes_done()) + " in " +
         report::duration(progress.elapsed_ns());
}

// Shows the progress of other clients' requests. On a terminal it redraws one line, with the
// request of the newest update. In a pipe it prints a line for each update.
class Display {
 public:
  explicit Display(bool json) : json_(json), terminal_(!json && ::isatty(STDOUT_FILENO) == 1) {}

  bool show(const v1::Progress& progress) {
    const bool over = progress.state() != v1::Progress::RUNNING;
    failed_ = failed_ || (over && progress.state() != v1::Progress::SUCCEEDED);
    if (json_) {
      std::printf("%s\n", json_text(report::to_json(progress)).c_str());
    } else if (over) {
      std::printf("%s%s\n", terminal_ ? "\r\x1b[K" : "", outcome_of(progress).c_str());
    } else {
      const std::string line = line_of(progress, terminal_ ? width_of_stderr() : 200);
      std::printf(terminal_ ? "\r%s\x1b[K" : "%s\n", line.c_str());
    }
    shown_ = true;
    return std::fflush(stdout) == 0;
  }
  [[nodiscard]] bool shown() const { return shown_; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  const bool json_;
  const bool terminal_;
  bool shown_ = false;
  bool failed_ = false;
};

void progress(Context& context, const v1::WatchRequest& request) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  Display display(context.json);
  grpc::ClientContext call;
  const Result<void> done = client->watch(
      request, [&](const v1::Progress& update) { return display.show(update); }, call);
  if (!done) return fail(context, done.error());
  if (!display.shown()) std::fprintf(stderr, "kymo: no dump or restore runs\n");
  if (display.failed()) context.exit_code = 1;
}

}  // namespace

void add_progress_option(CLI::App& verb, Context& context) {
  add_quiet_option(verb, context);
  verb.add_option("--progress", context.progress,
                  "When to show a progress bar: auto (if stderr is a terminal), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
}

bool shows_progress(const Context& context) {
  return context.progress == "always" ||
         (context.progress == "auto" && !context.quiet && ::isatty(STDERR_FILENO) == 1);
}

std::string new_request_id() {
  return "kymo-" + std::to_string(::getpid()) + "-" + std::to_string(unix_ns());
}

ProgressBar::ProgressBar(client::Client& client, std::string request_id, bool draws, bool quiet)
    : client_(client),
      request_id_(std::move(request_id)),
      draws_(draws),
      quiet_(quiet),
      thread_([this] {
        follow();
        over_.set_value();
      }) {}

// The request has ended, so its last update comes soon. If there is none, the daemon never started
// the request.
ProgressBar::~ProgressBar() {
  over_.get_future().wait_for(kLastUpdateWithin);
  call_.TryCancel();
  thread_.join();
}

// Errors are ignored, because they do not affect the request.
void ProgressBar::follow() {
  v1::WatchRequest request;
  request.set_request_id(request_id_);
  request.set_wait(true);
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  bool drawn = false;
  bool foretold = false;
  static_cast<void>(client_.watch(
      request,
      [&](const v1::Progress& update) {
        if (!update.forecast().empty() && !std::exchange(foretold, true)) {
          const bool warns = update.forecast().find(" not meet ") != std::string::npos;
          if (warns || !quiet_) say(update.forecast());
        }
        if (!draws_ || update.elapsed_ns() < kNoBarBeforeNs ||
            update.state() != v1::Progress::RUNNING) {
          return true;
        }
        const std::string line = line_of(update, width_of_stderr());
        std::fprintf(stderr, terminal ? "\r%s\x1b[K" : "%s\n", line.c_str());
        drawn = true;
        return true;
      },
      call_));
  if (drawn && terminal) std::fputs("\r\x1b[K", stderr);
}

void add_progress(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("progress", "Show the progress of running dumps and restores");
  verb->fallthrough();
  auto target = std::make_shared<std::string>();
  auto rate = std::make_shared<std::uint32_t>(10);
  auto wait = std::make_shared<bool>(false);
  verb->add_option("target", *target, "A PID, or the name of a job (default: all running requests)")
      ->option_text("PID|JOB");
  verb->add_option("--rate", *rate, "Updates per second")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_flag("--wait", *wait,
                 "Wait for a request to begin; without a target, continue until interrupted");
  verb->add_flag("--json", context.json, "Print a line of JSON for each update");
  verb->callback([&context, target, rate, wait] {
    v1::WatchRequest request;
    std::int32_t pid = 0;
    const char* end = target->data() + target->size();
    if (const auto parsed = std::from_chars(target->data(), end, pid);
        !target->empty() && parsed.ec == std::errc() && parsed.ptr == end) {
      request.set_pid(pid);
    } else if (!target->empty()) {
      request.set_job(*target);
    }
    request.set_updates_per_second(*rate);
    request.set_wait(*wait);
    progress(context, request);
  });
}

}  // namespace kymo::cli
