#include "kymod/flags.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "daemon/config/flags.h"
#include "seconds_option.h"

namespace kymo {
namespace {

using daemon::Config;
using daemon::Flag;

// Adds a flag by the type of what it sets.
struct Adder {
  CLI::App& app;
  Config& config;
  Result<void>& refused;
  const Flag& flag;

  [[nodiscard]] std::string name() const { return "--" + std::string(flag.name); }

  CLI::Option* operator()(const Flag::Switch& one) const {
    const std::string names = one.off ? name() + ",!--no-" + flag.name : name();
    return app.add_flag(names, config.*one.member, flag.help);
  }
  CLI::Option* operator()(const Flag::SwitchOff& one) const {
    return app.add_flag("!" + name(), config.*one.member, flag.help);
  }
  CLI::Option* operator()(const Flag::Bytes& bytes) const {
    return app.add_option(name(), config.*bytes.member, flag.help)
        ->transform(CLI::AsSizeValue(false));
  }
  CLI::Option* operator()(const Flag::Rate& rate) const {
    const std::string names = name() + "{" + std::to_string(rate.usual) + "}";
    return app.add_flag_function(
        names,
        [&value = config.*rate.member](std::int64_t given) {
          constexpr std::int64_t kMax = 1'000'000;  // more is refused as well
          value = static_cast<int>(std::clamp<std::int64_t>(given, 0, kMax));
        },
        flag.help);
  }
  CLI::Option* operator()(const Flag::Words& words) const {
    return app.add_flag(name() + ",!--no-" + flag.name, config.*words.member, flag.help);
  }
  CLI::Option* operator()(const Flag::Converted& converted) const {
    const auto set = [&config = config, &refused = refused, converted](const std::string& text) {
      Result<void> good = converted.set(config, text);
      if (!good && refused) refused = std::move(good);
    };
    return app.add_option_function<std::string>(name(), set, flag.help);
  }
  CLI::Option* operator()(Flag::List list) const {
    return app.add_option(name(), config.*list, flag.help)->allow_extra_args(false);
  }
  template <class Value>
  CLI::Option* operator()(Value Config::*member) const {
    if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
      return app.add_option(name(), config.*member, flag.help);
    } else {
      return app.add_option_function<long long>(
          name(), [&value = config.*member](long long count) { value = Value(count); }, flag.help);
    }
  }
};

}  // namespace

void add_flags(CLI::App& app, Config& config, Result<void>& refused) {
  for (const Flag& flag : daemon::flags()) {
    CLI::Option* const option = std::visit(Adder{app, config, refused, flag}, flag.target);
    if (*flag.environment != '\0') option->envname(flag.environment);
    if (!flag.choices.empty()) {
      option->check(
          CLI::IsMember(std::vector<std::string>(flag.choices.begin(), flag.choices.end())));
    }
    if (flag.seconds || std::holds_alternative<std::chrono::seconds Config::*>(flag.target)) {
      option->transform(cli::seconds_text(cli::Seconds::whole));
    }
    if (flag.range.min != flag.range.max) {
      option->check(CLI::Range(flag.range.min, flag.range.max));
    }
    // The help shows no default for what is off unless its flag is given.
    const std::string otherwise = daemon::value_of(flag, Config{});
    if (otherwise != "off") option->default_str(otherwise);
    if (flag.advanced) option->group("");
  }
}

std::string help_with_advanced(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) option->group("Advanced options");
  }
  return app.help();
}

}  // namespace kymo
