#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/kymo/v1/kymo.pb.h"
#include "kymo/result.h"

namespace kymo::client {

struct AttachOptions {
  std::optional<std::uint64_t> tail;  // the number of existing lines to show; empty: all
};

// Receives the output of an attached job, and messages about the job.
struct AttachOutput {
  std::function<void(std::string_view)> out;
  std::function<void(std::string_view)> err;
  std::function<void(const std::string&)> say;
  std::function<bool()> stop;  // called ten times a second; true ends attach()
};

// Follows the output files of a job until the job has ended or `stop` returns true. If this user may not read them, kymod
// does. It continues through dumps and restores, and while kymod is not reachable. Returns the last known state of the
// job, which says how an ended job ended.
//
// Errors: there is no such job, or kymod does not have its output, or the output cannot be read.
Result<v1::Job> attach(const std::string& socket, const std::string& job,
                       const AttachOptions& options, const AttachOutput& output);

}  // namespace kymo::client
