#include "kymo/recover.h"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lens/report/human.h"
#include "print.h"
#include "recordings/truncated.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct RecoverArguments {
  std::string ring;
  std::string output;
};

void recover(const RecoverArguments& arguments, Context& context) {
  const std::optional<std::string> output =
      arguments.output.empty() ? std::nullopt : std::optional(arguments.output);
  end_where_truncated("the ring " + arguments.ring + " was truncated while it was read");
  const Result<Recovery> recovery = recover_ring(arguments.ring, output);
  if (!recovery) return fail(context, recovery.error());
  if (context.quiet) return;
  if (context.json) {
    return print_json({{"ring", arguments.ring},
                       {"output", recovery->output},
                       {"rows", recovery->rows},
                       {"cut_bytes", recovery->cut_bytes}});
  }
  std::cout << "recovered " << report::with_commas(recovery->rows) << " rows into "
            << recovery->output << "; the ring " << arguments.ring << " is removed\n";
}

}  // namespace

void add_recover(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RecoverArguments>();
  CLI::App* verb = app.add_subcommand(
      "recover", "Write the rows that a killed recorder left in its ring file to its recording");
  verb->fallthrough();
  verb->add_option("RING", arguments->ring,
                   "The ring file (kymod --profiling-ring, ProfilerOptions::ring_file)")
      ->required();
  verb->add_option("-o,--output", arguments->output,
                   "Write the rows to this new recording (.tsv) instead");
  verb->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*verb, context);
  verb->callback([arguments, &context] { recover(*arguments, context); });
}

}  // namespace kymo::cli
