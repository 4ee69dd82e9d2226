#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "lens/analysis/metadata.h"

namespace kymo::analysis {

// Whether a recording is complete.
enum class Finish : std::uint8_t {
  ended,       // complete, or recovered after its recorder was killed
  writing,     // its recorder still runs and adds rows
  cut_short,   // its recorder is gone and did not finish it: no rows will be added
  unfinished,  // writing or cut_short, but unknown which: for example, it is of another host
};

// Asks the kernel whether the recorder that the metadata names still runs. The pid alone is not
// enough: another process may have it by now, or in another container. So the metadata has more of
// the recorder (ProcessIdentity). For an older recording without that, a process that started after
// the recording began is another one.
// A recorder in another pid namespace is looked for among all processes that are visible here. From
// within a container not all are: what is not found there may still run. Tests give another
// directory as `proc`.
// `path`: the recording; empty: not known. A process that may be looked into and does not have it open has called execve(2):
// the program after it has the same pid and start time.
// Cost: some files of /proc; for a recorder in another pid namespace, one for each process.
Finish finish_of(const Metadata& metadata, const std::string& path = {},
                 const std::string& proc = "/proc");

// "ended", "writing", "cut short", "unfinished".
const char* to_string(Finish finish);

// One sentence about a recording that is not complete. Empty if it has ended.
std::string sentence_of(Finish finish, const Metadata& metadata);

// The recordings of requests among `paths` that kymod still writes. kymod finishes them soon.
std::vector<std::string> about_to_end(const std::vector<std::string>& paths);

// Waits until none of `paths` is about_to_end(), for at most `most`. Returns those that still are.
// Blocks the calling thread.
std::vector<std::string> wait_until_ended(std::vector<std::string> paths,
                                          std::chrono::milliseconds most);

}  // namespace kymo::analysis
