#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/preflight/preflight.h"
#include "checkpoint/preflight/tree.h"

namespace kymo::preflight {

// Collects findings. Those of the same failure, grade and words are one finding with many places.
class Findings {
 public:
  // `what` and `remedy` are those of the catalogue if they are empty.
  void add(Grade grade, std::string_view failure, Place place, std::string_view what = {},
           std::string_view remedy = {});
  // The findings, those that refuse first.
  [[nodiscard]] std::vector<Finding> take();

 private:
  std::vector<Finding> findings_;
};

// One thing that CRIU cannot dump. Each check looks at the tree, and adds what it found.
struct Check {
  std::string_view name;
  void (*look)(const Tree& tree, const Options& options, Findings& found);
};

// The checks of each file, in the order in which CRIU would fail.
std::span<const Check> process_checks();
std::span<const Check> memory_checks();
std::span<const Check> file_checks();
std::span<const Check> object_checks();
std::span<const Check> mount_checks();
std::span<const Check> limit_checks();
std::span<const Check> lost_state_checks();
// Also adds to tree.not_seen what cannot be seen of the sockets.
void look_at_sockets(Tree& tree, const Options& options, Findings& found);
// What a process outside of the tree has open, too: one of these sockets (by the link in /proc/PID/fd), or a file that
// is locked. It keeps the address or the lock when the tree has ended, so a restore fails as long as it runs.
void look_at_holders(const Tree& tree, std::map<std::string, Place> held, Findings& found);

Place place_of(const Member& member, std::string object = {});
Place place_of(const Member& member, const OpenFile& file);
Place place_of(const Member& member, const Mapping& mapping);

// How many bytes the deleted files take that the tree still uses. CRIU copies each of them once.
std::uint64_t deleted_bytes_of(const Tree& tree);
// The same of the shared memory that has no name in a file system: memfds, System V, MAP_SHARED | MAP_ANONYMOUS.
std::uint64_t shared_objects_bytes_of(const Tree& tree);

// How many more huge pages of this size a program can get.
std::uint64_t free_huge_pages(std::uint64_t bytes);

// Memory that looks like a deleted file. CRIU dumps it in other ways.
bool is_memory(std::string_view path);

// Whether one of --external's arguments is this.
bool is_external(const Options& options, std::string_view name);

}  // namespace kymo::preflight
