#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "profiler/kept/store.h"

namespace kymo::profiles {

// A minute of a profile with 100 samples a second.
class SomeMinute {
 public:
  explicit SomeMinute(std::int64_t minute, Type type = Type::cpu) {
    minute_.minute = minute;
    minute_.type = type;
    minute_.begin_unix_ns = minute * kNanosPerMinute;
    minute_.profile.quantity = quantity_of(type);
    minute_.profile.period_ns = type == Type::cpu ? kPeriodNs : 0;
    minute_.profile.duration_ns = kNanosPerMinute;
  }

  // `names` are the functions, the innermost one first.
  SomeMinute& stack(const std::string& service, const std::vector<std::string>& names,
                    std::uint64_t samples, bool truncated = false) {
    stacks::NamedProfile::Stack stack{"process", {}, truncated, {samples, samples * kPeriodNs}};
    stack.service = service;
    for (const std::string& name : names) {
      stack.functions.push_back(static_cast<std::uint32_t>(minute_.profile.functions.size()));
      minute_.profile.functions.push_back({name, "/usr/lib/" + name + ".so", name != "unknown"});
    }
    minute_.profile.stacks.push_back(std::move(stack));
    return *this;
  }
  SomeMinute& lost(std::uint64_t samples) {
    minute_.profile.lost = samples;
    return *this;
  }
  // Makes it begin half a minute later, like the second part of a minute.
  SomeMinute& later() {
    minute_.begin_unix_ns += kNanosPerMinute / 2;
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for the minute
  operator const Minute&() const { return minute_; }

  static constexpr std::uint64_t kPeriodNs = 10'000'000;

 private:
  Minute minute_;
};

}  // namespace kymo::profiles
