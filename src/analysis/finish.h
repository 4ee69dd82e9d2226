#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/metadata.h"

namespace kymo::analysis {

// Whether a recording is whole.
enum class Finish : std::uint8_t {
  ended,       // whole, or recovered after its recorder was killed
  writing,     // its recorder runs, and adds to it
  cut_short,   // its recorder is gone and did not finish it: nothing will be added
  unfinished,  // as one of the two before; it was recorded on another host, so that nobody can tell
};

// Asks the kernel whether the recorder that the metadata names still runs. Its pid alone is not
// enough: a process that started after the recording did is another one. `proc` stands in for /proc
// in tests.
Finish finish_of(const Metadata& metadata, const std::string& proc = "/proc");

// "ended", "writing", "cut short", "unfinished".
const char* to_string(Finish finish);

// One sentence about a recording that is not whole; empty where it has ended.
std::string sentence_of(Finish finish, const Metadata& metadata);

// The recordings among `paths` that kymod still writes and will finish by itself soon: those of
// requests.
std::vector<std::string> about_to_end(const std::vector<std::string>& paths);

// Waits until none of `paths` is about_to_end(), at most `most`. Returns those that still are.
// Blocks the thread that calls it.
std::vector<std::string> wait_until_ended(std::vector<std::string> paths,
                                          std::chrono::milliseconds most);

}  // namespace kymo::analysis
