#include "client/attach.h"

#include <csignal>
#include <iostream>
#include <memory>
#include <optional>

#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr int kBySignal = 128;  // the shell's exit code for what a signal ended

volatile std::sig_atomic_t attach_interrupted = 0;

void attach_to(Context& context, const std::string& job, const client::AttachOptions& options) {
  std::signal(SIGINT, [](int) { attach_interrupted = 1; });
  client::AttachOutput output;
  output.out = [](std::string_view text) { (std::cout << text).flush(); };
  output.err = [](std::string_view text) { std::cerr << text; };
  output.say = say;
  output.stop = [] { return attach_interrupted != 0 || !std::cout.good(); };
  const Result<v1::Job> ended = client::attach(context.socket, job, options, output);
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
  auto job = std::make_shared<std::string>();
  auto options = std::make_shared<client::AttachOptions>();
  attach->fallthrough();
  attach->add_option("job", *job, "The job: its name or id")->required();
  attach
      ->add_option_function<std::uint64_t>(
          "-n,--tail", [options](std::uint64_t lines) { options->tail = lines; },
          "Begin with the last so many lines; otherwise with the first")
      ->check(CLI::NonNegativeNumber);
  attach->callback([&context, job, options] { attach_to(context, *job, *options); });
}

}  // namespace kymo::cli
