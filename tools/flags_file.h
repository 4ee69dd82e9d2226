#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <istream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace kymo::cli {

// A file of flags, without the flags that environment variables set. CLI11 itself prefers the file
// to the environment.
class FlagsFile : public CLI::ConfigTOML {
 public:
  explicit FlagsFile(const CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const std::string text(std::istreambuf_iterator<char>(input), {});
    refuse_spaces(text);
    std::istringstream again(text);
    std::vector<CLI::ConfigItem> read = CLI::ConfigTOML::from_config(again);
    std::erase_if(read, [this](const CLI::ConfigItem& item) {
      const CLI::Option* option =
          item.parents.empty() ? app_.get_option_no_throw("--" + item.name) : nullptr;
      return option != nullptr && is_set(option->get_envname());
    });
    return read;
  }

 private:
  static std::string_view trimmed(std::string_view text) {
    constexpr const char* kSpace = " \t\r";
    const std::size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
  }

  // CLI11 takes a value with spaces for several values, and its error does not say what to do.
  static void refuse_spaces(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const std::string_view plain = trimmed(line);
      const std::size_t equals = plain.find('=');
      if (plain.empty() || plain.find_first_of("#;[") == 0 || equals == std::string_view::npos) {
        continue;
      }
      const std::string_view value =
          trimmed(plain.substr(equals + 1, plain.find(" #") - equals - 1));
      if (value.find_first_of("\"'`[{") == 0 ||
          value.find_first_of(" \t") == std::string_view::npos) {
        continue;
      }
      const std::string name(trimmed(plain.substr(0, equals)));
      throw CLI::ConfigError(name + ": put quotes around a value with spaces: " + name + "=\"" +
                             std::string(value) + '"');
    }
  }

  static bool is_set(const std::string& variable) {
    const char* value = variable.empty() ? nullptr : std::getenv(variable.c_str());
    return value != nullptr && *value != '\0';
  }

  const CLI::App& app_;
};

// Adds --config FILE. The environment variable `variable` can name the file, too. The command line
// has precedence over the environment, and the environment over the file.
inline void add_flags_file(CLI::App& app, const char* variable) {
  const char* file = std::getenv(variable);
  const bool named = file != nullptr && *file != '\0';
  app.config_formatter(std::make_shared<FlagsFile>(app));
  // Do not use envname() for this: CLI11 looks at it only after it has read the file.
  app.set_config(
      "--config", named ? file : "",
      std::string("File with options, one NAME=VALUE per line (the environment variable ") +
          variable + " can name it, too)",
      named);
  app.allow_config_extras(CLI::config_extras_mode::error);
}

}  // namespace kymo::cli
