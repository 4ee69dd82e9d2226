#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "api/kymo/v1/kymo.pb.h"

namespace kymo::cli {

// What a verb can be about: `kymo VERB process PID|JOB`, `kymo VERB runc ID`, ...
struct TargetKind {
  const char* name;
  const char* what;
  const char* shown;
  void (*set)(v1::Target& target, const std::string& text);
};

inline constexpr std::array<TargetKind, 3> kTargetKinds{{
    {"process", "A process, or a job", "PID|JOB",
     [](v1::Target& target, const std::string& text) {
       // Digits alone are a pid: job names are never that.
       std::int32_t pid = 0;
       const char* end = text.data() + text.size();
       const auto parsed = std::from_chars(text.data(), end, pid);
       if (parsed.ec == std::errc() && parsed.ptr == end) {
         target.set_pid(pid);
       } else {
         target.set_job(text);
       }
     }},
    {"runc", "A container of runc", "ID",
     [](v1::Target& target, const std::string& text) { target.set_runc(text); }},
    {"podman", "A container of podman", "NAME|ID",
     [](v1::Target& target, const std::string& text) { target.set_podman(text); }},
}};

}  // namespace kymo::cli
