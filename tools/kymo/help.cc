#include "help.h"

#include <algorithm>
#include <memory>
#include <string_view>

namespace kymo::cli {
namespace {

constexpr std::string_view kKind = "process";

class VerbsFirst : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (app->get_parent() != nullptr) return CLI::Formatter::make_help(app, name, mode);
    return make_description(app) + make_subcommands(app, mode) +
           "\nkymo VERB --help shows the options of a verb.\n" + make_groups(app, mode) +
           make_footer(app);
  }
};

bool is_help(const std::string& word) {
  return word == "-h" || word == "--help";
}

const CLI::App* child(const CLI::App& app, std::string_view name) {
  const auto found =
      app.get_subcommands([name](const CLI::App* one) { return one->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

}  // namespace

void group_verbs(CLI::App& app) {
  auto formatter = std::make_shared<VerbsFirst>();
  formatter->column_width(14);  // for the names of verbs; those of options are longer
  app.formatter(formatter);
  const auto shown = app.get_subcommands([](CLI::App* one) { return !one->get_group().empty(); });
  for (CLI::App* one : shown) {
    const auto all = verbs();
    const auto verb = std::find_if(
        all.begin(), all.end(), [&](const Verb& known) { return known.name == one->get_name(); });
    one->group(std::string(verb->group));
  }
}

std::vector<std::string> with_kind(const CLI::App& app, std::vector<std::string> words) {
  const auto is_verb = [&](const std::string& word) { return child(app, word) != nullptr; };
  const auto at = std::find_if(words.begin(), words.end(), is_verb);
  if (at == words.end()) return words;
  const CLI::App* const verb = child(app, *at);
  const auto next = at + 1;
  const bool wants_kind = verb->get_require_subcommand_min() > 0 && child(*verb, kKind) != nullptr;
  if (!wants_kind || next == words.end() || is_help(*next)) return words;
  // A kind behind options is a mistake that explain_usage() explains.
  const auto is_kind = [&](const std::string& word) { return child(*verb, word) != nullptr; };
  const auto end = next->starts_with('-') ? std::find(next, words.end(), "--") : next + 1;
  if (std::none_of(next, end, is_kind)) words.insert(next, std::string(kKind));
  return words;
}

}  // namespace kymo::cli
