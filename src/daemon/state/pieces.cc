#include "daemon/state/pieces.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/beneath.h"
#include "base/file.h"
#include "base/file_follower.h"
#include "base/json_object.h"
#include "base/json_text.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::seconds kTime{10};  // a disk that is silent for longer makes the call fail
constexpr std::array<const char*, 3> kFolders{"work", "images", "recordings"};

// The functions down to output_text() run in the helper process.

Result<std::string> list_shown(const std::string& directory) {
  json names = json::array();
  if (is_shown("checkpoint.json") && fs::exists(directory + "/checkpoint.json")) {
    names.push_back("checkpoint.json");
  }
  for (const char* folder : kFolders) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(directory + "/" + folder, none)) {
      const std::string name = std::string(folder) + "/" + entry.path().filename().string();
      std::error_code unknown;
      const bool file = entry.symlink_status(unknown).type() == fs::file_type::regular;
      if (file && is_shown(name)) names.push_back(name);
    }
  }
  return json_text(json{{"files", std::move(names)}});
}

Result<std::string> read_piece(const std::string& request) {
  const json asked = parse_json(request);
  const std::string name = text_of(asked, "name");
  const Result<FileDescriptor> file = open_beneath(text_of(asked, "directory"), name, O_RDONLY);
  if (!file) return file.error();
  std::string piece(kMaxPiece, '\0');
  ssize_t got = -1;
  do {
    got = ::pread(file->get(), piece.data(), piece.size(),
                  static_cast<off_t>(number_of(asked, "offset")));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return system_error("read " + name, errno);
  piece.resize(static_cast<std::size_t>(got));
  return piece;
}

// The offset as a line of its own, before the text.
std::string output_text(const FileFollower& file, const std::string& text) {
  return std::to_string(file.at()) + "\n" + text;
}

Result<std::string> read_output_text(const std::string& request) {
  const json asked = parse_json(request);
  FileFollower file(text_of(asked, "path"), number_of(asked, "offset"));
  const Result<std::string> text = file.next();
  return text ? Result<std::string>(output_text(file, *text)) : text.error();
}

Result<std::string> find_output_tail(const std::string& request) {
  const json asked = parse_json(request);
  FileFollower file(text_of(asked, "path"));
  const Result<void> found = file.begin_with(number_of(asked, "lines"));
  return found ? Result<std::string>(output_text(file, "")) : found.error();
}

// The functions below run in kymod, which does not trust the answers of the helper.

Result<std::string> ask(const confine::Helper& helper, const char* work, const json& request,
                        const std::string& readable) {
  constexpr std::uint64_t kBesideThePiece = 1024;
  confine::Bounds bounds;
  bounds.readable = {readable};
  bounds.cpu_time = kTime;
  bounds.time = kTime;
  bounds.answer_bytes = kMaxPiece + kBesideThePiece;
  return helper.ask(work, json_text(request), bounds);
}

Result<OutputPiece> output_in(const Result<std::string>& answer) {
  if (!answer) return answer.error();
  OutputPiece piece;
  const char* const end = answer->data() + answer->size();
  const auto [after, error] = std::from_chars(answer->data(), end, piece.offset);
  if (error != std::errc() || after == end || *after != '\n') {
    return Error{Code::data_loss, "the process that reads a job's output sent no offset"};
  }
  piece.text.assign(after + 1, end);
  return piece;
}

}  // namespace

bool is_shown(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return name == "checkpoint.json";
  const std::string_view path = name;
  const std::string_view folder = path.substr(0, slash);
  const std::string_view file = path.substr(slash + 1);
  if (file.empty() || file.front() == '.' || file.find('/') != std::string_view::npos) return false;
  const bool statistics = file == "stats-dump" || file == "stats-restore";
  if (folder == "images") return statistics;
  if (folder == "work") return statistics || file.ends_with(".log");
  return folder == "recordings";
}

void add_piece_readers(confine::WorkByName& readers) {
  readers.insert({{"list what is shown of a checkpoint", list_shown},
                  {"read a piece of a file", read_piece},
                  {"read the output of a job", read_output_text},
                  {"find the tail of an output", find_output_tail}});
}

Result<std::vector<std::string>> shown_files_in(const confine::Helper& helper,
                                                const std::string& directory) {
  confine::Bounds bounds;
  bounds.readable = {directory};
  bounds.time = kTime;
  const Result<std::string> answer =
      helper.ask("list what is shown of a checkpoint", directory, bounds);
  if (!answer) return answer.error();
  std::vector<std::string> names;
  const json said = parse_object(*answer);
  for (const json& name : member(said, "files")) {
    if (name.is_string() && is_shown(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> piece_of(const confine::Helper& helper, const std::string& directory,
                             const std::string& name, std::uint64_t offset) {
  if (!is_shown(name)) {
    return Error{Code::permission_denied,
                 "read " + name + " of " + directory +
                     ": only files that say how the dump and the restores went are passed on"};
  }
  return ask(helper, "read a piece of a file",
             {{"directory", directory}, {"name", name}, {"offset", offset}}, directory);
}

Result<OutputPiece> output_from(const confine::Helper& helper, const std::string& path,
                                std::uint64_t offset) {
  return output_in(
      ask(helper, "read the output of a job", {{"path", path}, {"offset", offset}}, path));
}

Result<OutputPiece> output_tail(const confine::Helper& helper, const std::string& path,
                                std::uint64_t lines) {
  return output_in(
      ask(helper, "find the tail of an output", {{"path", path}, {"lines", lines}}, path));
}

}  // namespace kymo::daemon
