#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/kymo/v1/kymo.pb.h"
#include "kymo/result.h"

namespace kymo::client {

// Reads what is written to a growing file, from where it has come to.
class FileFollower {
 public:
  explicit FileFollower(std::string path) : path_(std::move(path)) {}

  // Begins with the last `lines` lines instead of the file's begin.
  Result<void> begin_with(std::uint64_t lines);
  // What has come since, at most a mebibyte of it; empty: nothing. A file that is gone has nothing
  // more. Errors: it cannot be read.
  Result<std::string> next();

 private:
  // Whether `at_` was moved on to where there is something.
  bool skip_what_is_gone(int file);

  std::string path_;
  std::uint64_t at_ = 0;
};

struct AttachOptions {
  std::optional<std::uint64_t> tail;  // so many lines of what is there already; none: all of it
};

// Where an attached job's output goes, and what is said of the job meanwhile.
struct AttachOutput {
  std::function<void(std::string_view)> out;
  std::function<void(std::string_view)> err;
  std::function<void(const std::string&)> say;
  std::function<bool()> stop;  // asked ten times a second
};

// Follows a job's output out of its files until the job has ended or `stop` says so: through dumps
// and restores, and while kymod is away. Returns the job as it was last seen: one that has ended
// says how. Errors: no such job, output that kymod does not keep or that cannot be read.
Result<v1::Job> attach(const std::string& socket, const std::string& job,
                       const AttachOptions& options, const AttachOutput& output);

}  // namespace kymo::client
