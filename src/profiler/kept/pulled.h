#pragma once

#include <map>
#include <string>
#include <vector>

#include "profiler/kept/pull_targets.h"
#include "profiler/kept/store.h"

namespace kymo::profiles {

// What one look at a target gave.
struct Pulled {
  struct Part {
    std::string profile;  // in the format of pprof; to be read like any file
    std::int64_t begin_unix_ns = 0;
  };
  std::map<Type, Part> parts;  // to be stored
  // The new values of `bases` (see pull()).
  std::map<Type, std::string> bases;
  std::vector<std::string> failures;  // one line each
  bool late = false;                  // an answer did not come in time; `failures` says so
  std::uint64_t bytes = 0;            // of all answers
};

// For how many seconds a target profiles its CPU, if it is asked once in `every_s` seconds.
int pull_seconds(int every_s);

// Asks the target for its profiles, and writes them to `to`, for pulled_in(). Call it in a process
// of its own: it ends that process. First it becomes the user nobody, without any capability. Then
// it sends its requests. Then it gives up all other rights, too, such as that to use the network
// (src/base/confine), and only then parses the answers.
//
// Profiles of some kinds (alloc, block, mutex) count from the start of the program. `bases` has the
// last profile of each of these kinds. Only the difference to it is written. If a count has fallen,
// the program was started again, and counts from 0 since then.
//
// Threads: the only one of the process.
// Bounds:  64 MiB for each answer, as many bytes for what is written of it; ten seconds for an answer to begin.
[[noreturn]] void pull(const PullTarget& target, const std::map<Type, std::string>& bases,
                       int cpu_s, int to);

// The API of Kubernetes.
struct PodSource {
  std::string address;  // is_address(); if it has no path, all pods are asked for
  std::string token;    // empty: none
  std::string ca_file;  // PullFrom
};

// Reads the file, gives up all rights, and only then parses what it has read. Writes list_text() of
// the targets to `to`.
// Bounds: 64 MiB for the file.
[[noreturn]] void list_file(const std::string& path, int to);

// Asks for the pods as pull() asks for profiles. Writes list_text() of those that are targets to
// `to`.
// Bounds: 64 MiB for the answer.
[[noreturn]] void list_pods(const PodSource& source, int to);

// Reads what pull() has written. If it is incomplete, the result has only a failure. The next pull
// is then compared with the same bases, so that nothing is lost and nothing counts twice.
Pulled pulled_in(const std::string& written);

// The growth from an earlier profile of a program to a later one.
stacks::NamedProfile difference(const stacks::NamedProfile& before,
                                const stacks::NamedProfile& now);

}  // namespace kymo::profiles
