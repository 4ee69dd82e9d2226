#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace kymo::runtime {

// Whether runc allows this id. Such an id cannot lead out of runc's folder.
bool is_container_id(const std::string& id);

// Identifies a folder, also if a later one gets the same path. The inode alone is not enough,
// because it may be used again after the next boot.
struct FolderId {
  ino_t inode = 0;
  std::int64_t made_unix_ns = 0;  // 0: its file system does not say
  bool operator==(const FolderId&) const = default;
};
// Nothing if there is none.
std::optional<FolderId> id_of_folder(const std::string& folder);

// The containers that an earlier kymod could not remove, by their ids, as the file `memory` has them. Empty: there is no
// file.
std::map<std::string, FolderId> read_left_over(const std::string& memory);
// Does not wait for a disk that stalls.
void write_left_over(const std::string& memory, const std::map<std::string, FolderId>& left);

}  // namespace kymo::runtime
