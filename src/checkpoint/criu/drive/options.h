#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kymo::criu {

// What CRIU does with the cgroups of a process (its --manage-cgroups). `unset`: it leaves the
// restored process in the cgroups of whoever restores it.
enum class Cgroups : std::uint8_t { unset, none, props, soft, full, strict, ignore };
// How CRIU keeps packets away from TCP connections while it dumps them (its --network-lock).
// `unset`: CRIU's own choice, which is iptables.
enum class NetworkLock : std::uint8_t { unset, iptables, nftables, skip };
// How CRIU finds out at a restore whether a file is the one of the dump (its --file-validation).
// `unset`: CRIU's own choice, which is the build id.
enum class FileValidation : std::uint8_t { unset, file_size, build_id };

// A file that is opened for a restored process (CRIU's --inherit-fd).
struct InheritedFile {
  std::string resource;  // what it replaces, in CRIU's words
  std::string path;
  bool only_writes = false;  // opened only for writing; else also for reading
};
// The number that the first such file has in criu. The next ones follow.
inline constexpr int kFirstInherited = 4;

// The options of CRIU that a user can give, for a dump and for its restore.
struct Options {
  // The processes may have open TCP connections.
  bool tcp_established = false;
  // The process belongs to the session of another process.
  bool shell_job = false;
  // The processes may hold file locks. For plain processes this is always on.
  bool file_locks = false;
  // CRIU's --external: "mnt[PATH]:NAME" at a dump, "mnt[NAME]:PATH" at a restore.
  std::vector<std::string> external;
  // The level of CRIU's log. 0: the default, at which the log shows the phases (3 at a dump, 4 at a
  // restore).
  int log_level = 0;
  // The processes may be connected to unix datagram sockets of other processes.
  bool external_unix_sockets = false;
  // Only for a restore: the mount point that becomes the root of the mount namespace.
  std::string root;
  // Only for a dump: the largest deleted file, in bytes, that CRIU copies into the images because
  // the processes have it open. 0: CRIU's default, 1 MiB.
  std::uint32_t ghost_limit = 0;
  // Only for a dump: CRIU may make a link to an open file whose name was deleted but which has
  // other names. The link stays in the file's folder until the restore removes it.
  bool link_remap = false;
  // TCP connections are not kept: the restored process finds them closed.
  bool tcp_close = false;
  // Only for a dump: connections that are not accepted yet are left out.
  bool skip_in_flight = false;
  Cgroups cgroups = Cgroups::unset;
  // Only for a dump. The images say which it was.
  NetworkLock network_lock = NetworkLock::unset;
  FileValidation file_validation = FileValidation::unset;
  // Only for a restore.
  std::vector<InheritedFile> inherited;
};

// The names that CRIU's command line has for these. "" for unset.
std::string_view name_of(Cgroups mode);
std::string_view name_of(NetworkLock method);
std::string_view name_of(FileValidation method);
// The mode of this name. unset if there is none.
Cgroups cgroups_named(std::string_view name);

// The options as arguments of the criu command.
std::vector<std::string> arguments_of(const Options& options);
// The names of those options that are given, as kymo's command line has them.
std::vector<std::string_view> given(const Options& options);

}  // namespace kymo::criu
