#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/config/config.h"
#include "kymo/result.h"

namespace kymo::daemon {

// A flag of kymod. The parser of the command line, `kymod --help`, `kymod --help-all`, the lines that
// kymod logs when it starts and docs/kymod.md are all made from flags().
struct Flag {
  // Sets a member to true. `off`: a second flag --no-NAME sets it to false.
  struct Switch {
    bool Config::*member;
    bool off = false;
  };
  // Sets a member to false.
  struct SwitchOff {
    bool Config::*member;
  };
  // A number of bytes, with or without a unit, such as 10GiB.
  struct Bytes {
    std::uint64_t Config::*member;
  };
  // A number of samples a second that may be left out: the flag alone means `usual`. 0: off.
  struct Rate {
    int Config::*member;
    int usual;
  };
  // Words separated by commas that may be left out: the flag alone, or --no-NAME, is "true" or "false".
  // resolve_and_check() reads them.
  struct Words {
    std::vector<std::string> Config::*member;
    const char* otherwise;  // what it means if it is not given
  };
  // A value whose text has a form of its own.
  struct Converted {
    Result<void> (*set)(Config&, std::string_view);
    std::string (*text)(const Config&);
  };
  // A list: the flag may be repeated.
  using List = std::vector<std::string> Config::*;
  using Target = std::variant<std::string Config::*, List, Switch, SwitchOff, Bytes, Rate, Words,
                              Converted, std::uint64_t Config::*, int Config::*,
                              std::chrono::seconds Config::*, std::chrono::microseconds Config::*>;
  struct Range {
    int min = 0;
    int max = 0;  // the same as `min`: the parser allows any number
  };

  const char* name;  // without dashes
  Target target;
  const char* help;
  const char* environment = "";  // the variable that sets it, too; empty: none
  std::vector<std::string_view>
      choices{};  // the allowed values; empty: resolve_and_check() decides
  Range range{};
  bool seconds = false;   // a time, though its type is a mere number
  bool advanced = false;  // only `kymod --help-all` shows it
};

// All flags of kymod, in the order of the help. It never changes.
const std::vector<Flag>& flags();

// The value of a flag as text. Empty for an empty string and an empty list.
std::string value_of(const Flag& flag, const Config& config);

// The effective configuration: one line "name = value" for each flag.
std::vector<std::string> describe(const Config& config);

}  // namespace kymo::daemon
