#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/recording_name.h"
#include "kymo/recover.h"
#include "lens/analysis/metadata.h"
#include "recorder/sampling/ring/ring_memory.h"
#include "ring_bytes.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

namespace fs = std::filesystem;

// A folder in memory for this process. It is the working directory as long as the object exists, because a ring can
// name any file as its output.
class Folder {
 public:
  Folder()
      : before_(fs::current_path()), path_("/dev/shm/kymo-fuzz-" + std::to_string(::getpid())) {
    fs::create_directory(path_);
    fs::current_path(path_);
  }
  ~Folder() {
    fs::current_path(before_);
    fs::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

 private:
  fs::path before_;
  fs::path path_;
};

void write(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Removes the text up to the first NUL byte, and returns it.
std::string_view take_text(std::string_view& text) {
  const std::string_view taken = text.substr(0, text.find('\0'));
  text.remove_prefix(std::min(taken.size() + 1, text.size()));
  return taken;
}

// Whether the ring names no output, or one in this folder.
bool stays_here() {
  const auto ring = RingMemory::open_file("ring");
  return ring.ok() && (*ring)->description().find('/') == std::string_view::npos &&
         (*ring)->description().find('\\') == std::string_view::npos;
}

void check(const Recovery& recovery) {
  const auto metadata = analysis::read_metadata(recording_stem(recovery.output) + ".meta.json");
  require(!metadata || metadata->state == "recovered", "a recovered recording says so");
  require(fs::exists(recovery.output) && !fs::exists("ring"), "the rows have moved");
}

void recover_to_new() {
  const auto recovery = recover_ring("ring", "new.tsv");
  if (!recovery) {
    require(!recovery.error().message.empty(), "an error says something");
    return;
  }
  check(*recovery);
  const std::string rows = content_of("new.tsv");
  require(
      std::count(rows.begin(), rows.end(), '\n') == static_cast<std::ptrdiff_t>(recovery->rows) + 1,
      "a line a row, behind the header");
}

void recover_in_place(const std::string& ring) {
  write("ring", ring);
  if (!stays_here()) {
    return;
  }
  const std::string before = content_of("run.tsv");
  const auto recovery = recover_ring("ring");
  require(content_of("run.tsv").starts_with(before), "a recording is never cut");
  if (!recovery) {
    require(!recovery.error().message.empty(), "an error says something");
    require(content_of("ring") == ring, "a ring that is refused stays");
    return;
  }
  check(*recovery);
  // Recovers again, as if the process had been killed before it had removed the ring.
  const std::string once = content_of(recovery->output);
  write("ring", ring);
  const auto again = recover_ring("ring");
  require(again.ok() && again->output == recovery->output && again->rows == recovery->rows,
          "a recovery can be done again");
  require(content_of(recovery->output) == once, "and does the same again");
}

}  // namespace

// The bytes are a ring, and then, separated by NUL bytes, the recording run.tsv, its metadata and its gaps.
void recover(Bytes data) {
  const Folder folder;
  const RingBytes bytes = mend_ring(data);
  write("ring", bytes.ring);
  recover_to_new();
  std::string_view rest = bytes.rest;
  for (const char* name : {"run.tsv", "run.meta.json", "run.gaps.tsv"}) {
    if (!rest.empty()) {
      write(name, take_text(rest));
    }
  }
  recover_in_place(bytes.ring);
}

}  // namespace kymo::fuzz
