#include "checkpoint/runtimes/runc/left_over.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_text.h"
#include "base/patience.h"

namespace kymo::runtime {

using nlohmann::json;

bool is_container_id(const std::string& id) {
  return !id.empty() && id != "." && id != ".." && id.size() <= 1024 &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '+' || c == '-' || c == '.';
         });
}

std::optional<FolderId> id_of_folder(const std::string& folder) {
  struct statx about {};
  if (::statx(AT_FDCWD, folder.c_str(), 0, STATX_INO | STATX_BTIME, &about) != 0)
    return std::nullopt;
  const bool told = (about.stx_mask & STATX_BTIME) != 0;
  return FolderId{about.stx_ino,
                  told ? about.stx_btime.tv_sec * 1'000'000'000 + about.stx_btime.tv_nsec : 0};
}

std::map<std::string, FolderId> read_left_over(const std::string& memory) {
  std::map<std::string, FolderId> left;
  const Result<std::string> text =
      memory.empty() ? Result<std::string>(Error{Code::not_found, "no file"}) : read_file(memory);
  const json listed = parse_json(text ? *text : "");
  if (!listed.is_object()) return left;
  for (const auto& [id, folder] : listed.items()) {
    if (!is_container_id(id) || !folder.is_object()) continue;
    const json inode = folder.value("inode", json());
    const json made = folder.value("made_unix_ns", json());
    if (inode.is_number_integer() && made.is_number_integer()) left[id] = {inode, made};
  }
  return left;
}

void write_left_over(const std::string& memory, const std::map<std::string, FolderId>& left) {
  if (memory.empty()) return;
  json listed = json::object();
  for (const auto& [id, folder] : left) {
    if (folder.made_unix_ns == 0) continue;  // it could not be told from a later one
    listed[id] = {{"inode", folder.inode}, {"made_unix_ns", folder.made_unix_ns}};
  }
  static_cast<void>(within(kDiskPatience, [memory, text = json_text(listed) + "\n"] {
    return replace_file(memory, text).ok();
  }));
}

}  // namespace kymo::runtime
