#include <iostream>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/api_json.h"
#include "lens/report/short_reason.h"
#include "messages.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

std::string command_of(const v1::Job& job) {
  std::string out;
  for (const std::string& word : job.command()) out += (out.empty() ? "" : " ") + word;
  return out;
}

// Whether something else than a frozen cgroup or a signal makes it stand still.
bool is_held(const v1::Job& job) {
  return !job.held().empty() && (!job.frozen() || job.held().starts_with("held by"));
}

// What holds the job, what goes on with it, how it ended, and why its newest dump failed. Empty if
// none is the case.
std::string note_of(const v1::Job& job) {
  if (is_held(job)) return job.held();
  std::string note = job.held();
  const auto add = [&note](const std::string& text) {
    if (!text.empty()) note += (note.empty() ? "" : "; ") + text;
  };
  add(job.pending());
  add(ending_of(job));
  if (!job.last_failure().empty()) {
    add("its newest dump failed: " + report::short_reason(job.last_failure()));
  }
  return note;
}

void list_jobs(Context& context) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::ListResponse> response = client->list();
  if (!response) return fail(context, response.error());
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{
      {"NAME", "STATE", "PID", "CREATED", "COMMAND", "NOTE"}};
  constexpr std::size_t kCommand = 4;
  for (const v1::Job& job : response->jobs()) {
    json.push_back(report::to_json(job));
    const bool running = job.state() == v1::Job::RUNNING;
    const bool frozen = job.frozen() && job.pending().empty();  // a dump stops the process
    const char* const halted = is_held(job) ? "held" : frozen ? "frozen" : nullptr;
    rows.push_back({job.name(),
                    halted != nullptr ? halted : json.back()["state"].get<std::string>(),
                    running ? std::to_string(job.pid()) : "-", local_time(job.created_unix_ns()),
                    command_of(job), note_of(job)});
  }
  if (context.json) return print_json(json);
  print_table(std::move(rows), kCommand);
}

}  // namespace

void add_ps(CLI::App& app, Context& context) {
  CLI::App* ps = app.add_subcommand("ps", "List the jobs, also those that have ended");
  ps->fallthrough();
  ps->add_flag("--json", context.json, "Print JSON");
  ps->add_flag("-a,--all")->group("");  // what other tools have: it lists all jobs anyway
  ps->callback([&context] { list_jobs(context); });
}

}  // namespace kymo::cli
