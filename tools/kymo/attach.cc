#include "client/attach.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>

#include "print.h"
#include "report/human.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr int kBySignal = 128;  // the shell's exit code for what a signal ended

volatile std::sig_atomic_t attach_interrupted = 0;

// What a terminal would obey is made printable, but for the ends of lines and tabs: a job may write
// what it was given by anybody.
std::string harmless(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\r\t"), text.size());
    shown += report::printable(text.substr(0, end));
    if (end < text.size()) shown += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shown;
}

struct AttachFlags {
  std::string job;
  client::AttachOptions options;
  bool raw = false;
};

void attach_to(Context& context, const AttachFlags& flags) {
  std::signal(SIGINT, [](int) { attach_interrupted = 1; });
  const bool raw_out = flags.raw || isatty(STDOUT_FILENO) == 0;
  const bool raw_err = flags.raw || isatty(STDERR_FILENO) == 0;
  client::AttachOutput output;
  output.out = [raw_out](std::string_view text) {
    (raw_out ? std::cout << text : std::cout << harmless(text)).flush();
  };
  output.err = [raw_err](std::string_view text) {
    (raw_err ? std::cerr << text : std::cerr << harmless(text)).flush();
  };
  output.say = say;
  output.stop = [] { return attach_interrupted != 0 || !std::cout.good(); };
  const Result<v1::Job> ended = client::attach(context.socket, flags.job, flags.options, output);
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
    std::cerr << "kymo: job " << ended->name() << " has ended, it is not known how\n";
    context.exit_code = 1;
  }
}

}  // namespace

void add_attach(CLI::App& app, Context& context) {
  CLI::App* attach = app.add_subcommand(
      "attach", "Follow a job's output until it ends; its exit code becomes this one's");
  auto flags = std::make_shared<AttachFlags>();
  attach->fallthrough();
  attach->add_option("job", flags->job, "The job: its name or id")->required();
  attach
      ->add_option_function<std::uint64_t>(
          "-n,--tail", [flags](std::uint64_t lines) { flags->options.tail = lines; },
          "Begin with the last so many lines; otherwise with the first")
      ->check(CLI::NonNegativeNumber);
  attach->add_flag("--raw", flags->raw,
                   "Let the job's output command a terminal: its colours, and whatever else");
  attach->callback([&context, flags] { attach_to(context, *flags); });
}

}  // namespace kymo::cli
