#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/claims.h"

namespace kymo::daemon {

// The exclusive use of directories of checkpoints, under each of their names: the path as it was written and the path
// without symbolic links. So a request that names a directory through a link keeps others away from it as well.
//
// Threads: any.
class DirectoryClaim {
 public:
  // What a claim does while a disk does not answer.
  enum class SilentDisk : std::uint8_t {
    wait,   // until it answers, for a request that would wait for this disk in any case
    leave,  // claim only the path as written after kDiskPatience
  };
  // What a claim keeps away. Claims for different uses do not exclude each other, so a deletion makes both.
  enum class Use : std::uint8_t {
    request,   // dumps, restores and deletions
    deletion,  // deletions alone: a restore that kymod cannot end goes on
  };

  DirectoryClaim() = default;
  // Claims all of these directories or none. False if another claim holds one of them: if that is the path as written,
  // without any access to a disk.
  DirectoryClaim(Claims<std::string>& claims, const std::set<std::string>& paths,
                 SilentDisk silent = SilentDisk::wait, Use use = Use::request);
  explicit operator bool() const { return static_cast<bool>(written_); }

 private:
  Claims<std::string>::Claim written_;
  Claims<std::string>::Claim real_;  // of the paths that are not those as written
};

// The path of a directory without symbolic links, as far as it exists. If the disk does not answer within kDiskPatience,
// the path as written.
std::string real_directory(const std::string& path);
std::set<std::string> real_directories(const std::set<std::string>& paths);

}  // namespace kymo::daemon
