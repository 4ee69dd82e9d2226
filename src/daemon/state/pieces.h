#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/confine/helper.h"
#include "kymo/result.h"

// Files that kymod passes on to a caller who may not read them. What is passed on is not looked at.
namespace kymo::daemon {

// The most bytes that are passed on at once.
inline constexpr std::size_t kMaxPiece = std::size_t{1} << 20;

// Whether the file of a checkpoint says how its dump and restores went: checkpoint.json, CRIU's logs and
// statistics, recordings and stack profiles. No such file has memory of the process. `name` is relative
// to the checkpoint's directory.
bool is_shown(const std::string& name);

// The functions that kymod's helper process offers for this.
void add_piece_readers(confine::WorkByName& readers);

// The names of the files in a checkpoint's directory that are shown, sorted.
Result<std::vector<std::string>> shown_files_in(const confine::Helper& helper,
                                                const std::string& directory);
// The bytes of such a file from `offset` on.
// Errors: permission_denied: the file is not shown; those of open_beneath() and of Helper::ask().
Result<std::string> piece_of(const confine::Helper& helper, const std::string& directory,
                             const std::string& name, std::uint64_t offset);

// What a job has printed into a file.
struct OutputPiece {
  std::string text;
  std::uint64_t offset = 0;  // where the next piece begins
};

// The bytes from `offset` on, as FileFollower::next().
Result<OutputPiece> output_from(const confine::Helper& helper, const std::string& path,
                                std::uint64_t offset);
// No text, and the offset of the last `lines` lines.
Result<OutputPiece> output_tail(const confine::Helper& helper, const std::string& path,
                                std::uint64_t lines);

}  // namespace kymo::daemon
