#include <signal.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/client.h"
#include "lens/report/api_json.h"
#include "messages.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct KillArguments {
  v1::KillRequest request;
  bool wait = false;
};

// The number of the signal "TERM", "SIGTERM", "term" or "15". 0 if there is no such signal.
int signal_of(std::string text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  if (const auto parsed = std::from_chars(text.data(), end, number);
      parsed.ec == std::errc() && parsed.ptr == end) {
    return number >= 1 && number <= SIGRTMAX ? number : 0;
  }
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (text.starts_with("SIG")) text.erase(0, 3);
  for (number = 1; number < NSIG; ++number) {
    const char* const name = sigabbrev_np(number);
    if (name != nullptr && text == name) return number;
  }
  return 0;
}

// "SIGTERM", or "signal 40" if the signal has no name.
std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

// Waits until the process that got the signal has ended.
Result<v1::Job> wait_for_end(client::Client& client, v1::Job job) {
  const std::uint64_t start_ticks = job.start_ticks();
  while (job.state() == v1::Job::RUNNING && job.start_ticks() == start_ticks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const Result<v1::InspectResponse> seen = client.inspect(job.id());
    if (!seen) return seen.error();
    job = seen->job();
  }
  return job;
}

void kill_job(Context& context, const KillArguments& arguments) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::KillResponse> sent = client->kill(arguments.request);
  if (!sent) return fail(context, sent.error());
  Result<v1::Job> job = sent->job();
  if (arguments.wait) job = wait_for_end(*client, sent->job());
  if (!job) return fail(context, job.error());
  if (context.quiet) return;
  if (context.json) return print_json(report::to_json(*job));
  std::cout << "sent " << signal_name(arguments.request.signal()) << " to job " << job->name()
            << " (pid " << sent->job().pid() << ")";
  if (arguments.wait) {
    const std::string ending = ending_of(*job);
    std::cout << "; it " << (ending.empty() ? "has ended" : ending);
  }
  std::cout << '\n';
}

}  // namespace

void add_kill(CLI::App& app, Context& context) {
  CLI::App* kill = app.add_subcommand("kill", "Send a signal to the process of a job");
  auto arguments = std::make_shared<KillArguments>();
  arguments->request.set_signal(SIGTERM);
  kill->fallthrough();
  kill->add_option_function<std::string>(
          "job", [arguments](const std::string& job) { arguments->request.set_job(job); },
          "Name or id of the job")
      ->required();
  kill->add_option_function<std::string>(
          "-s,--signal",
          [arguments](const std::string& text) {
            const int signal = signal_of(text);
            if (signal == 0) {
              throw CLI::ValidationError("--signal",
                                         "there is no signal '" + text +
                                             "': give a name or number, such as TERM, KILL or 15");
            }
            arguments->request.set_signal(signal);
          },
          "Signal to send: a name or a number")
      ->default_str("TERM");
  kill->add_flag("--wait", arguments->wait, "Wait until the process has ended");
  kill->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*kill, context);
  kill->callback([&context, arguments] { kill_job(context, *arguments); });
}

}  // namespace kymo::cli
