#include <cstddef>
#include <iostream>
#include <memory>
#include <string>

#include "print.h"
#include "report/checkpoint_diff.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

struct DiffArguments {
  std::string before;
  std::string after;
  std::size_t rows = 20;
};

void print_diff(Context& context, const DiffArguments& arguments) {
  const auto before = report::read_checkpoint_stats(arguments.before);
  if (!before) return fail(context, before.error());
  const auto after = report::read_checkpoint_stats(arguments.after);
  if (!after) return fail(context, after.error());
  const std::vector<report::Difference> differences = report::compare(*before, *after);
  if (context.json) {
    return print_json(report::json_of(differences, arguments.before, arguments.after));
  }
  std::cout << report::text_of(differences, arguments.before, arguments.after, arguments.rows);
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  CLI::App* diff = app.add_subcommand(
      "diff", "What differs between two checkpoints: phases, sizes, pages, throughput");
  auto arguments = std::make_shared<DiffArguments>();
  diff->fallthrough();
  diff->add_option("a", arguments->before, "A checkpoint: whatever kymo stats reads")->required();
  diff->add_option("b", arguments->after, "Another, to be compared with it")->required();
  diff->add_option("--rows", arguments->rows, "How many differences to print")
      ->capture_default_str();
  diff->add_flag("--json", context.json, "Print JSON, with all of them");
  diff->callback([&context, arguments] { print_diff(context, *arguments); });
}

}  // namespace kymo::cli
