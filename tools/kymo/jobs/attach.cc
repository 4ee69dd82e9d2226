#include "client/attach.h"

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <string_view>

#include "lens/report/human.h"
#include "messages.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr int kBySignal = 128;  // as in a shell, the exit code is 128 + N if signal N ended it

volatile std::sig_atomic_t attach_interrupted = 0;

// Copies a stream of the job to stdout or stderr. A job's output may contain untrusted data, so
// control characters are removed before it goes to a terminal.
class AttachedStream {
 public:
  AttachedStream(std::ostream& to, bool raw) : to_(to), raw_(raw) {}

  void pass(std::string_view text) {
    raw_ ? to_ << text : to_ << filter_.pass(text);
    to_.flush();
  }
  void end() { (to_ << filter_.end()).flush(); }

 private:
  std::ostream& to_;
  const bool raw_;
  report::TerminalFilter filter_;
};

struct AttachFlags {
  std::string job;
  client::AttachOptions options;
  bool raw = false;
};

void attach_to(Context& context, const AttachFlags& flags) {
  std::signal(SIGINT, [](int) { attach_interrupted = 1; });
  AttachedStream out(std::cout, flags.raw || isatty(STDOUT_FILENO) == 0);
  AttachedStream err(std::cerr, flags.raw || isatty(STDERR_FILENO) == 0);
  client::AttachOutput output;
  output.out = [&out](std::string_view text) { out.pass(text); };
  output.err = [&err](std::string_view text) { err.pass(text); };
  output.say = say;
  output.stop = [] { return attach_interrupted != 0 || !std::cout.good(); };
  const Result<v1::Job> ended = client::attach(context.socket, flags.job, flags.options, output);
  out.end();
  err.end();
  if (!ended) return fail(context, ended.error());
  if (ended->state() != v1::Job::EXITED) {
    std::cerr << "kymo: detached: job " << ended->name() << " goes on\n";
    context.exit_code = kBySignal + SIGINT;
  } else if (ended->has_exit_code()) {
    context.exit_code = ended->exit_code();
  } else if (ended->has_exit_signal()) {
    std::cerr << "kymo: job " << ended->name() << ' ' << ending_of(*ended) << '\n';
    context.exit_code = kBySignal + ended->exit_signal();
  } else {
    std::cerr << "kymo: job " << ended->name() << " has ended; its exit code is not known\n";
    context.exit_code = 1;
  }
}

}  // namespace

void add_attach(CLI::App& app, Context& context) {
  CLI::App* attach = app.add_subcommand(
      "attach", "Follow the output of a job until it ends, and exit with its exit code");
  auto flags = std::make_shared<AttachFlags>();
  attach->fallthrough();
  attach->add_option("job", flags->job, "Name or id of the job")->required();
  attach
      ->add_option_function<std::uint64_t>(
          "-n,--tail", [flags](std::uint64_t lines) { flags->options.tail = lines; },
          "Begin with the last N lines (default: with the first line)")
      ->check(CLI::NonNegativeNumber);
  attach->add_flag("--raw", flags->raw,
                   "Pass control characters of the output, such as colours, to the terminal "
                   "(default: remove them)");
  attach->callback([&context, flags] { attach_to(context, *flags); });
}

}  // namespace kymo::cli
