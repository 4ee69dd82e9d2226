#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kymo::criu {

// A file that was deleted while a process had it open is restored as a "ghost": CRIU makes a file
// NAME.cr.ID.ghost, which the processes open, and then removes it. If CRIU is killed in between,
// the ghost stays. The next restore then fails, because CRIU creates a ghost only if there is no
// file of its name.

// The paths, as the processes see them, of the ghosts that a restore may have made according to its
// log.
std::vector<std::string> ghosts_in(std::string_view log);

// A file of this machine: its name in a folder. No part of the name may be a link.
struct GhostFile {
  std::string folder;
  std::string name;
};
// Finds the file of this machine that a path of the restored processes names. Returns nothing if
// there is none, for example because their mounts are gone.
using PlaceOfGhost = std::function<std::optional<GhostFile>(const std::string& path)>;
std::optional<GhostFile> ghost_of_this_machine(const std::string& path);

// Removes the ghosts that a restore which was ended has left. Call it after its CRIU and all its processes have
// ended. A file counts as a ghost of this restore only if its log names it, it is no folder, and it was made
// after `since_unix_ns`, when the restore began. What cannot be removed stays.
// Threads: any. Waits at most kDiskPatience; if a disk does not answer, the rest is done when it does.
void remove_leftover_ghosts(const std::string& log_path, std::int64_t since_unix_ns,
                            const PlaceOfGhost& place_of = ghost_of_this_machine);

}  // namespace kymo::criu
