#include "usage.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "base/near_names.h"

namespace kymo::cli {
namespace {

// The command that the user typed, as far as CLI11 understood it.
struct Typed {
  const CLI::App* app = nullptr;
  std::string program;             // "kymo"
  std::string path;                // "dump runc"; empty if there is no known verb
  std::vector<std::string> words;  // the words that CLI11 did not understand

  [[nodiscard]] std::string command() const {
    return path.empty() ? program : program + " " + path;
  }
  [[nodiscard]] std::string help() const { return " (see " + command() + " --help)"; }
  [[nodiscard]] std::string prefix() const { return path.empty() ? "" : path + ": "; }
};

Typed typed_command(const CLI::App& app) {
  Typed typed{&app, app.get_name(), "", app.remaining()};
  while (!typed.app->get_subcommands().empty()) {
    typed.app = typed.app->get_subcommands().back();
    typed.path += (typed.path.empty() ? "" : " ") + typed.app->get_name();
    const std::vector<std::string> own = typed.app->remaining();
    typed.words.insert(typed.words.end(), own.begin(), own.end());
  }
  return typed;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && word != "--";
}

std::vector<std::string> kinds_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(one->get_name());
  }
  return names;
}

// "a, b or c"
std::string choice_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

// The options of this command and of its parents.
std::vector<std::string> options_of(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
  }
  return names;
}

struct OtherName {
  std::string_view typed;
  std::string_view ours;
};

// What other tools call the verbs of kymo.
constexpr OtherName kVerbs[] = {{"checkpoint", "dump"}, {"save", "dump"},
                                {"start", "run"},       {"list", "ps"},
                                {"ls", "ps"},           {"jobs", "ps"},
                                {"status", "ps"},       {"logs", "attach"},
                                {"log", "attach"},      {"stop", "kill"},
                                {"pause", "freeze"},    {"unpause", "unfreeze"},
                                {"resume", "unfreeze"}, {"rm", "delete"},
                                {"remove", "delete"},   {"info", "inspect"},
                                {"show", "inspect"},    {"images", "checkpoints"},
                                {"why", "explain"},     {"diagnose", "explain"},
                                {"events", "history"},  {"top", "watch"},
                                {"compare", "diff"},    {"doctor", "check"},
                                {"trace", "profile"},   {"flamegraph", "profile"}};

// What other tools call the options of kymo. An option is proposed to the verbs that have it.
constexpr OtherName kOptions[] = {{"--timeout", "--deadline"},
                                  {"--compress", "--compression"},
                                  {"--since", "--from"},
                                  {"--since", "--last"},
                                  {"--until", "--to"},
                                  {"--at", "--from"},
                                  {"-n", "--last"},
                                  {"--limit", "--rows"}};

// "; did you mean NAME?" for a verb of other tools. Empty for others.
std::string by_another_name(const std::string& word) {
  const auto* found = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                   [&](const OtherName& name) { return name.typed == word; });
  return found == std::end(kVerbs) ? "" : "; did you mean " + std::string(found->ours) + "?";
}

// "; did you mean --NAME?" for an option of other tools that `known` has under another name, or for
// one that is nearly one of `known`. Empty for others.
std::string option_meant(const std::string& typed, const std::vector<std::string>& known) {
  for (const OtherName& name : kOptions) {
    const std::string ours(name.ours);
    if (name.typed == typed && std::find(known.begin(), known.end(), ours) != known.end()) {
      return "; did you mean " + ours + "?";
    }
  }
  constexpr std::size_t kShort = 2;  // no proposal for one letter: all others are equally near
  return typed.size() <= kShort ? "" : did_you_mean(typed, known);
}

// Whether the option may be one of the command that `kymo run` gets.
std::string for_the_command(const CLI::App& app) {
  const CLI::Option* const command = app.get_option_no_throw("command");
  return command == nullptr || command->count() == 0
             ? ""
             : "; if it is an option of the command, put -- before the command";
}

std::string unknown_option(const Typed& typed, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::vector<std::string> known = options_of(typed.app);
  if (!typed.path.empty() && std::find(known.begin(), known.end(), name) != known.end()) {
    // CLI11 did not know it where it stands: before the word of the command that has it.
    return typed.prefix() + "put " + name + " behind " + typed.app->get_name() + typed.help();
  }
  return typed.prefix() + "there is no option " + name + option_meant(name, known) +
         for_the_command(*typed.app) + typed.help();
}

// The message for `kymo foo`.
std::string unknown_command(const Typed& typed, const std::vector<std::string>& commands) {
  if (typed.words.empty()) return "no command is given" + typed.help();
  const std::string& word = typed.words.front();
  if (is_option(word)) return unknown_option(typed, word);
  if (word == "help") {
    return "there is no command help: type kymo --help, or kymo COMMAND --help";
  }
  const std::string other = by_another_name(word);
  return "there is no command " + word + (other.empty() ? did_you_mean(word, commands) : other) +
         typed.help();
}

// The message for `kymo dump`, in which the target is missing.
std::string which_kind(const Typed& typed) {
  const std::vector<std::string> kinds = kinds_of(*typed.app);
  return typed.prefix() + "choose one of " + choice_of(kinds) + ": type " + typed.command() + " " +
         kinds.front() + " ..." + typed.help();
}

std::string unexpected(const Typed& typed) {
  const auto option = std::find_if(typed.words.begin(), typed.words.end(), is_option);
  if (option != typed.words.end()) return unknown_option(typed, *option);
  return typed.prefix() + "one argument too many: " + typed.words.front() +
         (typed.words.size() > 1 ? " and " + std::to_string(typed.words.size() - 1) + " more"
                                 : "") +
         typed.help();
}

// Rewrites CLI11's message so that it says what to type.
std::string reworded(const Typed& typed, std::string text) {
  constexpr std::string_view kRequired = " is required";
  constexpr std::string_view kNoNumber = "Could not convert: ";
  const std::size_t missing = text.find(": 1 required ");
  if (text.ends_with(kRequired)) {
    const std::string name = text.substr(0, text.size() - kRequired.size());
    std::string shown = name;
    for (char& c : shown) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    text = name + " is missing: type " + typed.command() + " " +
           (is_option(name) ? name + " VALUE" : shown);
  } else if (missing != std::string::npos) {
    text = text.substr(0, missing) + " needs a value";
  } else if (text.starts_with(kNoNumber)) {
    text.erase(0, kNoNumber.size());
    const std::size_t equals = text.find(" = ");
    if (equals != std::string::npos) text.replace(equals, 3, ": not a valid number: ");
  } else if (text.starts_with(typed.app->get_name() + ": ")) {
    text.erase(0, typed.app->get_name().size() + 2);
  }
  // CLI11 writes the bounds of floating-point options with zeros as decimals.
  constexpr std::string_view kNoPlaces = ".000000";
  for (std::size_t at = text.find(kNoPlaces); at != std::string::npos; at = text.find(kNoPlaces)) {
    text.erase(at, kNoPlaces.size());
  }
  constexpr std::string_view kAnyUpTo =
      " not in range 0 to 17976931348623157";  // the largest double
  const std::size_t any = text.find(kAnyUpTo);
  if (any != std::string::npos) text = text.substr(0, any) + " is not a number of at least 0";
  return typed.prefix() + text + typed.help();
}

std::string config_file(const CLI::ParseError& error, const CLI::App& app) {
  const CLI::Option* option = app.get_config_ptr();
  const std::string file = option == nullptr ? "" : option->as<std::string>();
  std::error_code unknown;
  if (std::filesystem::is_directory(file, unknown)) {
    return "read the config file " + file + ": it is a folder; name a file (--config, KYMO_CONFIG)";
  }
  if (!file.empty() && ::access(file.c_str(), R_OK) != 0) {
    return "read the config file " + file + ": " + std::strerror(errno) +
           "; check the path (--config, KYMO_CONFIG)";
  }
  constexpr std::string_view kUnknown = "INI was not able to parse ";
  const std::string text = error.what();
  if (text.starts_with(kUnknown)) {
    const std::string name = text.substr(kUnknown.size());
    return "read the config file " + file + ": there is no option " + name +
           did_you_mean("--" + name, options_of(&app));
  }
  return "read the config file " + file + ": " + text;
}

bool is_error(const CLI::ParseError& error, CLI::ExitCodes code) {
  return error.get_exit_code() == static_cast<int>(code);
}

}  // namespace

std::string explain_usage(const CLI::ParseError& error, const CLI::App& app,
                          const std::vector<std::string>& commands, const std::string& first) {
  if (is_error(error, CLI::ExitCodes::ConfigError) || is_error(error, CLI::ExitCodes::FileError)) {
    return config_file(error, app);
  }
  const Typed typed = typed_command(app);
  const bool is_command = std::find(commands.begin(), commands.end(), first) != commands.end();
  if (!commands.empty() && !first.empty() && !is_option(first) && !is_command) {
    return unknown_command({&app, app.get_name(), "", {first}}, commands);
  }
  const bool extra = is_error(error, CLI::ExitCodes::ExtrasError);
  const bool missing = is_error(error, CLI::ExitCodes::RequiredError);
  if ((extra || missing) && typed.app->get_require_subcommand_min() > 0 &&
      typed.app->get_subcommands().empty()) {
    return typed.app == &app ? unknown_command(typed, commands) : which_kind(typed);
  }
  // An unknown option is a better explanation than an argument that is missing because of it.
  const bool has_option = std::any_of(typed.words.begin(), typed.words.end(), is_option);
  if (!typed.words.empty() && (extra || (missing && has_option))) return unexpected(typed);
  return reworded(typed, error.what());
}

}  // namespace kymo::cli
