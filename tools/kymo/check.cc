#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "print.h"
#include "runtimes/host_check.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

const char* state_name(runtime::Finding::State state) {
  switch (state) {
    case runtime::Finding::State::good:
      return "ok";
    case runtime::Finding::State::absent:
      return "absent";
    case runtime::Finding::State::bad:
      break;
  }
  return "BAD";
}

void check(Context& context, const std::string& criu, const std::string& fallback) {
  const std::vector<runtime::Finding> findings = runtime::check_host(criu, fallback);
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  for (const runtime::Finding& finding : findings) {
    const char* state = state_name(finding.state);
    json.push_back({{"what", finding.what}, {"state", state}, {"detail", finding.detail}});
    rows.push_back({finding.what, state, finding.detail});
  }
  if (context.json) {
    print_json(json);
  } else {
    print_table(rows);
  }
  const bool bad = std::any_of(findings.begin(), findings.end(), [](const auto& finding) {
    return finding.state == runtime::Finding::State::bad;
  });
  if (bad) context.exit_code = 1;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  CLI::App* check_verb = app.add_subcommand(
      "check", "What this machine can do: CRIU, kernel features, runtimes and their criu");
  auto criu = std::make_shared<std::string>("criu");
  check_verb->fallthrough();
  check_verb->add_option("--criu", *criu, "The criu to check: a path, or a name on PATH")
      ->envname("KYMO_CRIU")
      ->capture_default_str();
  auto fallback = std::make_shared<std::string>();
  check_verb
      ->add_option("--criu-fallback", *fallback,
                   "The criu that kymod is to use where that one is too old")
      ->envname("KYMO_CRIU_FALLBACK");
  check_verb->add_flag("--json", context.json, "Print JSON");
  check_verb->callback([&context, criu, fallback] { check(context, *criu, *fallback); });
}

}  // namespace kymo::cli
