#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/runtimes/host_check.h"
#include "checkpoints/check_checkpoint.h"
#include "checkpoints/check_target.h"
#include "client/client.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

const char* state_name(runtime::HostFinding::State state) {
  switch (state) {
    case runtime::HostFinding::State::good:
      return "ok";
    case runtime::HostFinding::State::absent:
      return "absent";
    case runtime::HostFinding::State::bad:
      break;
  }
  return "BAD";
}

// The CRIU programs to check, and who uses them.
struct Crius {
  std::string first;
  std::string fallback;
  std::optional<v1::HealthResponse> of_kymod;
};

std::string kymod_text(const v1::HealthResponse& kymod) {
  return kymod.version() + " runs, pid " + std::to_string(kymod.pid());
}

// Asks the kymod that runs: it does the work, and may have another environment.
Result<std::vector<runtime::HostFinding>> checked_by_kymod(const Context& context,
                                                           const v1::HealthResponse& kymod) {
  Result<client::Client> client = client::Client::connect(context.socket);
  const Result<v1::CheckResponse> seen =
      client ? client->check({}) : Result<v1::CheckResponse>(client.error());
  client::end_threads();  // some checks fork
  if (!seen) return seen.error();
  using State = runtime::HostFinding::State;
  std::vector<runtime::HostFinding> findings{
      {"kymod", State::good, kymod_text(kymod) + "; it has checked what follows"}};
  for (const v1::HostFinding& finding : seen->host()) {
    const State state = finding.state() == v1::HostFinding::GOOD     ? State::good
                        : finding.state() == v1::HostFinding::ABSENT ? State::absent
                                                                     : State::bad;
    findings.push_back({finding.what(), state, finding.detail()});
  }
  return findings;
}

std::vector<runtime::HostFinding> check_machine(const Context& context, const Crius& crius) {
  std::string not_asked;
  if (crius.of_kymod) {
    Result<std::vector<runtime::HostFinding>> seen = checked_by_kymod(context, *crius.of_kymod);
    if (seen) return *std::move(seen);
    not_asked = kymod_text(*crius.of_kymod) +
                "; its CRIU is checked, but not with its environment: " + seen.error().message;
  }
  std::vector<runtime::HostFinding> findings = runtime::check_host(crius.first, crius.fallback);
  if (!not_asked.empty()) {
    findings.insert(findings.begin(), {"kymod", runtime::HostFinding::State::good, not_asked});
  }
  return findings;
}

Result<v1::HealthResponse> health_of(const std::string& socket) {
  Result<client::Client> client = client::Client::connect(socket);
  return client ? client->health() : client.error();
}

// The CRIU programs of the kymod that runs, unless the user named one.
Crius choose_crius(const Context& context, const CLI::App& verb, const std::string& criu,
                   const std::string& fallback) {
  Crius crius{criu, fallback, {}};
  if (verb.count("--criu") != 0 || verb.count("--criu-fallback") != 0) return crius;
  Result<v1::HealthResponse> health = health_of(context.socket);
  client::end_threads();  // some checks fork
  if (!health) return crius;
  crius.first = health->criu_path();
  crius.fallback = health->criu_fallback_path();
  crius.of_kymod = *std::move(health);
  return crius;
}

void check(Context& context, const Crius& crius) {
  std::vector<runtime::HostFinding> findings = check_machine(context, crius);
  if (auto by_hand = runtime::check_criu_by_hand(crius.first)) {
    findings.push_back(*std::move(by_hand));
  }
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  for (const runtime::HostFinding& finding : findings) {
    const char* state = state_name(finding.state);
    json.push_back({{"what", finding.what}, {"state", state}, {"detail", finding.detail}});
    rows.push_back({finding.what, state, finding.detail});
  }
  if (context.quiet) {
    // The exit code says it all.
  } else if (context.json) {
    print_json(json);
  } else {
    print_table(rows);
  }
  const bool bad = std::any_of(findings.begin(), findings.end(), [](const auto& finding) {
    return finding.state == runtime::HostFinding::State::bad;
  });
  if (bad) context.exit_code = 1;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  CLI::App* check_verb = app.add_subcommand(
      "check",
      "Check what this machine supports: CRIU, kernel features, container runtimes and their CRIU; "
      "or whether a checkpoint can be restored here, or a process or container dumped");
  auto checkpoint = std::make_shared<std::string>();
  check_verb->add_option("checkpoint", *checkpoint,
                         "Check a restore: directory or id of a checkpoint, a job (its last "
                         "checkpoint; for a dump of it: kymo check process JOB), or a directory of "
                         "CRIU images; list what would make its restore here fail");
  auto criu = std::make_shared<std::string>("criu");
  check_verb->fallthrough();
  check_verb
      ->add_option("--criu", *criu,
                   "CRIU program to check: a path, or a name on PATH (default: that of the kymod "
                   "that runs, else criu)")
      ->envname("KYMO_CRIU");
  auto fallback = std::make_shared<std::string>();
  check_verb
      ->add_option("--criu-fallback", *fallback,
                   "Second CRIU program, which kymod uses if the first is too old")
      ->envname("KYMO_CRIU_FALLBACK");
  check_verb->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*check_verb, context);
  add_check_targets(*check_verb, context);
  check_verb->callback([&context, checkpoint, criu, fallback, check_verb] {
    if (!check_verb->get_subcommands().empty()) {
      if (checkpoint->empty()) return;
      throw CLI::ValidationError(*checkpoint, "there is one target only");
    }
    const Crius crius = choose_crius(context, *check_verb, *criu, *fallback);
    if (!checkpoint->empty()) {
      return check_checkpoint(context, *checkpoint, crius.first, crius.fallback);
    }
    check(context, crius);
  });
}

}  // namespace kymo::cli
