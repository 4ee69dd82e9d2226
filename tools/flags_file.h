#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace kymo::cli {

// A file of flags as CLI11 reads it, less what the environment says: CLI11 itself asks the
// environment only for what neither command line nor file have said.
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

// Adds --config FILE, which `variable` names one for, too. The command line goes before the
// environment, and that before the file.
inline void add_flags_file(CLI::App& app, const char* variable) {
  const char* file = std::getenv(variable);
  const bool named = file != nullptr && *file != '\0';
  app.config_formatter(std::make_shared<FlagsFile>(app));
  // Not by envname(), which CLI11 looks at once it has read the file.
  app.set_config("--config", named ? file : "",
                 std::string("A file of flags, NAME=VALUE a line; ") + variable + " names one, too",
                 named);
  app.allow_config_extras(CLI::config_extras_mode::error);
}

}  // namespace kymo::cli
