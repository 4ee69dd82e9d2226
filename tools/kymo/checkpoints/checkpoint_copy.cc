#include "checkpoints/checkpoint_copy.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "base/absolute_path.h"
#include "base/recording_name.h"
#include "client/client.h"
#include "print.h"

namespace kymo::cli {
namespace {

namespace fs = std::filesystem;

// Removes the copies when the program ends. A process without rights, which is forked, ends without it.
class CopiedFolders {
 public:
  CopiedFolders() = default;
  CopiedFolders(const CopiedFolders&) = delete;
  CopiedFolders& operator=(const CopiedFolders&) = delete;
  ~CopiedFolders() {
    std::error_code ignored;
    for (const std::string& folder : folders_) fs::remove_all(folder, ignored);
  }

  Result<std::string> make() {
    std::error_code none;
    const fs::path temporary = fs::temp_directory_path(none);
    std::string folder = (none ? fs::path("/tmp") : temporary) / "kymo-copy-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) return system_error("make " + folder, errno);
    folders_.push_back(folder);
    return folder;
  }

 private:
  std::vector<std::string> folders_;
};

bool is_closed_to_us(const std::string& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return errno == EACCES;
  return S_ISDIR(info.st_mode) && ::access(directory.c_str(), R_OK | X_OK) != 0 && errno == EACCES;
}

// The program at the socket may be another one than kymod.
bool is_safe_name(const std::string& name) {
  constexpr std::array<const char*, 3> kFolders{"work/", "images/", "recordings/"};
  const std::string file = name.substr(name.find('/') + 1);
  const bool known = std::any_of(kFolders.begin(), kFolders.end(),
                                 [&](const char* folder) { return name.starts_with(folder); });
  return (known || name == "checkpoint.json") && !file.empty() && file.front() != '.' &&
         file.find('/') == std::string::npos;
}

Result<void> copy_one(client::Client& client, v1::ReadCheckpointRequest request,
                      const std::string& to) {
  std::error_code ignored;
  fs::create_directories(fs::path(to).parent_path(), ignored);
  std::ofstream file(to, std::ios::binary);
  for (;;) {
    const Result<v1::ReadCheckpointResponse> piece = client.read_checkpoint(request);
    if (!piece) return piece.error();
    const std::string& bytes = piece->content();
    if (bytes.empty()) break;
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    request.set_offset(request.offset() + bytes.size());
  }
  file.close();
  return file ? Result<void>() : system_error("write " + to, errno);
}

// Nothing if kymod does not know the checkpoint.
Result<std::optional<std::string>> copy_of(const Context& context, const std::string& directory,
                                           CopiedFolders& folders) {
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return std::optional<std::string>();
  v1::ReadCheckpointRequest request;
  request.set_checkpoint(directory);
  const Result<v1::ReadCheckpointResponse> listed = client->read_checkpoint(request);
  if (!listed && listed.error().code == Code::not_found) return std::optional<std::string>();
  if (!listed) return listed.error();
  const Result<std::string> folder = folders.make();
  if (!folder) return folder.error();
  // With the name of the checkpoint, and a parent of its own: what is beside a checkpoint is read, too.
  const std::string copy = *folder + "/" + fs::path(directory).filename().string();
  for (const std::string& name : listed->files()) {
    if (!is_safe_name(name)) continue;
    request.set_file(name);
    if (Result<void> ok = copy_one(*client, request, copy + "/" + name); !ok) return ok.error();
  }
  return std::optional(copy);
}

}  // namespace

std::string readable_checkpoint(const Context& context, const std::string& directory) {
  const fs::path file(directory);
  if (is_recording_name(directory) && file.parent_path().filename() == "recordings") {
    const std::string checkpoint = file.parent_path().parent_path();
    const std::string readable = readable_checkpoint(context, checkpoint);
    return readable == checkpoint ? directory
                                  : readable + "/recordings/" + file.filename().string();
  }
  if (!is_closed_to_us(directory)) return directory;
  static CopiedFolders folders;
  const Result<std::optional<std::string>> copy = copy_of(
      context, fs::path(absolute_path(directory) + "/").lexically_normal().parent_path(), folders);
  client::end_threads();
  if (!copy) say(copy.error().message);
  if (!copy || !*copy) return directory;
  if (!context.quiet) {
    say(directory + ": only root may read it: this is from a copy that kymod gave, without images");
  }
  return **copy;
}

std::string as_in(const std::string& directory, const std::string& copy, const std::string& path) {
  return path.starts_with(copy) ? directory + path.substr(copy.size()) : path;
}

}  // namespace kymo::cli
