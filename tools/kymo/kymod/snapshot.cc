#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/client.h"
#include "lens/report/human.h"
#include "print.h"
#include "seconds_option.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr double kNanosPerSecond = 1e9;

void take(Context& context, const v1::SnapshotRequest& request) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return fail(context, client.error());
  const Result<v1::SnapshotResponse> response = client->snapshot(request);
  if (!response) return fail(context, response.error());
  if (!response->note().empty()) say(response->note());
  if (context.quiet) return;
  if (context.json) {
    return print_json({{"recording", response->recording()}, {"before_ns", response->before_ns()}});
  }
  std::cout << report::printable(response->recording()) << '\n';
}

}  // namespace

void add_snapshot(CLI::App& app, Context& context) {
  CLI::App* snapshot =
      app.add_subcommand("snapshot", "Write a recording of the seconds before and after now");
  snapshot->fallthrough();
  auto before = std::make_shared<double>(5);
  auto after = std::make_shared<double>(1);
  auto directory = std::make_shared<std::string>();
  snapshot
      ->add_option("--before", *before,
                   "Time before now, such as 10s or 2m, or a number of seconds (at most what kymod "
                   "keeps in memory)")
      ->transform(seconds_text())
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  snapshot
      ->add_option("--after", *after,
                   "Time after now, for which the command waits, such as 500ms, or a number of "
                   "seconds")
      ->transform(seconds_text())
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  snapshot->add_option("-d,--dir", *directory,
                       "Existing directory for the recording (default: a directory of kymod)");
  snapshot->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*snapshot, context);
  snapshot->callback([&context, before, after, directory] {
    v1::SnapshotRequest request;
    request.set_before_ns(static_cast<std::uint64_t>(*before * kNanosPerSecond));
    request.set_after_ns(static_cast<std::uint64_t>(*after * kNanosPerSecond));
    if (!directory->empty()) {
      request.set_directory(std::filesystem::absolute(*directory).lexically_normal().string());
    }
    take(context, request);
  });
}

}  // namespace kymo::cli
