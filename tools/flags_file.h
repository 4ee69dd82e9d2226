#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace kymo::cli {

// A file of flags, without the flags that environment variables set. CLI11 itself prefers the file
// to the environment.
class FlagsFile : public CLI::ConfigTOML {
 public:
  explicit FlagsFile(const CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> read = CLI::ConfigTOML::from_config(input);
    std::erase_if(read, [this](const CLI::ConfigItem& item) {
      const CLI::Option* option =
          item.parents.empty() ? app_.get_option_no_throw("--" + item.name) : nullptr;
      return option != nullptr && is_set(option->get_envname());
    });
    return read;
  }

 private:
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
