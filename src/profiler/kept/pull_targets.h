#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kymo/result.h"

namespace kymo::profiles {

// A program of Go that serves its profiles (net/http/pprof).
struct PullTarget {
  std::string service;  // its text_of()
  std::string host;
  int port = 0;
  std::string path;  // before /debug/pprof, such as "/admin"; mostly empty

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the comparison for a pointer
  auto operator<=>(const PullTarget&) const = default;
};

struct PullTargets {
  std::vector<PullTarget> all;
  std::string trouble;  // why some are left out; empty: none are

  bool operator==(const PullTargets&) const = default;
};

// Reads the targets of a file. It has one of two formats:
// - lines "NAME http://HOST[:PORT][/PATH]"; what follows a # is a comment. The service is target:NAME.
// - the pods of Kubernetes as JSON (`kubectl get pods -A -o json`). A pod is a target if its annotation
//   coroot.com/profile-scrape or kymograph/profile-scrape is "true"; coroot.com/profile-port or
//   kymograph/profile-port has the port (default 6060). Pods without an address are left out. So is one
//   whose port is not valid, because the owner of a pod can write anything there. The service is pod:NAMESPACE/NAME.
// Errors: invalid_argument: which line is wrong, and why.
Result<PullTargets> pull_targets_in(std::string_view text, const std::string& path);

// Whether this names an API and not a file: it begins with http:// or https://.
bool is_address(std::string_view text);

// The form in which the child process that reads the targets passes them, or its error, to the
// program that has started it. listed_in() checks each target again, because the child may have
// been taken over. `place`: the file, or the address of the API. An API lists only pods.
std::string list_text(const Result<PullTargets>& targets);
Result<PullTargets> listed_in(std::string_view text, const std::string& place);

}  // namespace kymo::profiles
