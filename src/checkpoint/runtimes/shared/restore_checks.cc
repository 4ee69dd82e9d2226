#include "checkpoint/runtimes/shared/restore_checks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <string_view>

#include "base/file.h"
#include "base/json_object.h"
#include "base/proc/id_uses.h"
#include "checkpoint/criu/images/pstree.h"
#include "checkpoint/criu/images/whole_tar.h"
#include "checkpoint/preflight/criu_config.h"
#include "checkpoint/preflight/host_names.h"
#include "checkpoint/preflight/text.h"
#include "checkpoint/runtimes/shared/build_id.h"
#include "checkpoint/runtimes/shared/link_checks.h"
#include "checkpoint/runtimes/shared/lock_checks.h"
#include "checkpoint/runtimes/shared/process_checks.h"

namespace kymo::runtime {
namespace {

using nlohmann::json;
using preflight::Findings;
using preflight::Grade;
using preflight::Place;

constexpr std::size_t kMaxListed = 8;  // of the features that a CPU lacks

Place object_place(std::string object) {
  Place place;
  place.object = std::move(object);
  return place;
}

// The value of the first line "KEY\t: VALUE" of /proc/cpuinfo.
std::string cpu_value(std::string_view text, std::string_view key) {
  const std::size_t at = text.find("\n" + std::string(key) + "\t");
  if (at == std::string_view::npos) return {};
  const std::string_view line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  const std::size_t colon = line.find(": ");
  return colon == std::string_view::npos ? "" : std::string(line.substr(colon + 2));
}

// Of JSON that anybody may have written.
bool flag_in(const json& object, const char* key) {
  const json& flag = kymo::member(object, key);
  return flag.is_boolean() && flag.get<bool>();
}

std::vector<std::string> texts_in(const json& object, const char* key) {
  std::vector<std::string> texts;
  for (const json& each : kymo::member(object, key)) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

// The failure that follows from a fault of the images (criu/verify.h).
std::string_view failure_of_fault(std::string_view fault) {
  if (!fault.starts_with("pages-")) return "images-broken";
  return fault.find(": it is missing") != std::string_view::npos ? "pages-missing" : "pages-cut";
}

void look_at_images(const PlannedRestore& planned, Findings& found) {
  for (const std::string& fault : planned.faults) {
    if (fault.find(criu::kSharedMemoryArchive) != std::string::npos) {
      found.add(Grade::warns, "images-broken", {}, fault,
                "Take another copy of the checkpoint, if there is one.");
      continue;
    }
    found.add(Grade::refuses, failure_of_fault(fault), object_place(fault), {},
              "Take another copy of the checkpoint; kymo verify shows what is damaged.");
  }
}

// A container has pids of its own.
void look_at_pids(const PlannedRestore& planned, Findings& found,
                  std::vector<std::string>& not_seen) {
  if (planned.container) return;
  if (criu::is_first_of_pid_namespace(planned.ids.empty() ? 0 : planned.ids.front())) {
    found.add(Grade::refuses, "pid-taken", object_place("pid 1"), kOwnPidNamespace,
              "Restore it with CRIU itself (criu restore --images-dir DIR).");
    return;
  }
  const auto uses = probe::uses_of({planned.ids.begin(), planned.ids.end()});
  if (!uses) not_seen.push_back(uses.error().message);
  for (const probe::IdUse& use : uses ? *uses : std::vector<probe::IdUse>()) {
    std::string object = use.process.zombie() ? "a zombie" : "";
    if (!use.as.empty()) {
      object +=
          (object.empty() ? "" : ", ") + ("whose " + use.as) + " is " + std::to_string(use.id);
    }
    found.add(Grade::refuses, "pid-taken",
              {use.process.pid, use.process.name, -1, std::move(object)});
  }
}

// The reader of the images, which has no rights, answers in JSON, where bytes that are not UTF-8 become this character.
constexpr std::string_view kNotUtf8 = "\xEF\xBF\xBD";

// The size of a regular file at the dump and now.
void add_size(const std::string& path, std::uint64_t then, std::uint64_t now, Findings& found) {
  const bool grew = now > then;
  std::string what = path + ", " + std::to_string(then) + " bytes then, " + std::to_string(now) +
                     " now: " + std::to_string(grew ? now - then : then - now);
  what += grew ? " more" : " fewer";
  std::string remedy;
  if (grew) {
    remedy = "If the program has only appended to it, keep a copy and cut the file: truncate -s " +
             std::to_string(then) + " " + path + ". Else put the old file back.";
  } else {
    remedy = "Put the old file back.";
  }
  found.add(Grade::refuses, "file-size", object_place(std::move(what)),
            grew ? "a file is larger than at the dump" : "a file is smaller than at the dump",
            remedy);
}

void look_at_file(const criu::NeededFile& file, const preflight::Options& options, Findings& found,
                  std::vector<std::string>& not_seen) {
  if (file.path.find(kNotUtf8) != std::string::npos) {
    not_seen.push_back(file.path + ": its name is not UTF-8");
    return;
  }
  if (const std::string link = link_of_another_user(file.path); !link.empty()) {
    found.add(Grade::refuses, "file-link",
              object_place(file.path + (link == file.path ? "" : ", at " + link)));
    return;
  }
  struct statx seen {};
  if (::statx(AT_FDCWD, file.path.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
              STATX_TYPE | STATX_MODE | STATX_SIZE, &seen) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      found.add(Grade::refuses, "file-missing", object_place(file.path));
    } else {
      not_seen.push_back(file.path + ": " + std::strerror(errno));
    }
    return;
  }
  const std::uint32_t ignored = options.any_permissions ? S_IRWXU | S_IRWXG | S_IRWXO : 0;
  if (file.size && S_ISREG(seen.stx_mode) && seen.stx_size != *file.size) {
    add_size(file.path, *file.size, seen.stx_size, found);
  } else if (file.mode != 0 && ((seen.stx_mode ^ file.mode) & ~ignored) != 0) {
    std::array<char, 64> modes{};
    std::snprintf(modes.data(), modes.size(), ", mode %o at the dump, %o now", file.mode & 07777U,
                  seen.stx_mode & 07777U);
    found.add(Grade::refuses, "file-mode", object_place(file.path + modes.data()));
  } else if (!file.build_id.empty() && !options.by_size) {
    const Result<std::string> now = build_id_of(file.path);
    if (!now) {
      not_seen.push_back(file.path + ": " + now.error().message);
    } else if (!now->empty() && *now != file.build_id) {  // without one, CRIU compares the size
      found.add(Grade::refuses, "file-buildid", object_place(file.path));
    }
  }
}

// A path in another mount namespace may name another file here, so it is not looked at.
void look_at_files(const PlannedRestore& planned, Findings& found,
                   std::vector<std::string>& not_seen) {
  if (planned.container) return;
  if (planned.needs.own_mounts) {
    not_seen.emplace_back("files: they are in a mount namespace that the restore makes");
    return;
  }
  preflight::Options options;
  for (const std::string& file : preflight::criu_config_files()) add_configured(file, options);
  options.by_size = planned.by_size.value_or(options.by_size);
  // A process gets the terminal of its restore, and what is in /proc is made by the kernel.
  for (const criu::NeededFile& file : planned.needs.files) {
    if (preflight::is_memory(file.path) || file.path.starts_with("/proc/") ||
        file.path.starts_with("/dev/pts/")) {
      continue;
    }
    look_at_file(file, options, found, not_seen);
  }
}

void look_at_huge_pages(const PlannedRestore& planned, Findings& found) {
  for (const auto& [bytes, needed] : planned.needs.huge_pages) {
    const std::uint64_t free = preflight::free_huge_pages(bytes);
    if (free >= needed) continue;
    found.add(Grade::refuses, "huge-restore",
              object_place(std::to_string(needed) + " of " + std::to_string(bytes >> 10U) +
                           " KiB, free are " + std::to_string(free)),
              "fewer huge pages are free than the checkpoint needs");
  }
}

// CRIU waits without a limit for a lock that somebody else holds.
void look_at_locks(const PlannedRestore& planned, Findings& found) {
  if (planned.container || planned.needs.own_mounts || planned.needs.locks.empty()) return;
  const HeldLocks held = HeldLocks::now();
  for (const criu::NeededLock& lock : planned.needs.locks) {
    const std::optional<LockHolder> holder = held.holder_of(lock);
    if (holder) {
      found.add(Grade::refuses, "lock-wait",
                {holder->pid, holder->name, -1, "which holds a lock of " + lock.path},
                "another process holds a file lock of the checkpoint");
    }
  }
}

// Returns 0 if the address can be bound, else errno. A TCP socket has the options that CRIU sets before it binds: it may
// take an address that a connection of an earlier socket still has, or that another socket of this user shares. A UDP
// socket would take datagrams of the others, so it shares nothing.
int bind_error(const criu::NeededAddress& address) {
  const int family = address.ipv6 ? AF_INET6 : AF_INET;
  const int type = (address.udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC;
  const FileDescriptor socket(::socket(family, type, 0));
  if (!socket.valid()) return errno;
  const int on = 1;
  if (!address.udp) {
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  }
  if (address.ipv6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(address.port);
    ::inet_pton(AF_INET6, address.address.c_str(), &to.sin6_addr);
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  ::inet_pton(AF_INET, address.address.c_str(), &to.sin_addr);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
}

std::string name_of(const criu::NeededAddress& address) {
  const std::string host = address.ipv6 ? "[" + address.address + "]" : address.address;
  return (address.udp ? "UDP " : "TCP ") + host + ":" + std::to_string(address.port);
}

void look_at_addresses(const PlannedRestore& planned, Findings& found,
                       std::vector<std::string>& not_seen) {
  if (planned.container || planned.needs.own_network) return;
  std::set<std::string> looked_at;
  for (const criu::NeededAddress& address : planned.needs.addresses) {
    const std::string text = name_of(address);
    if (!looked_at.insert(text).second) continue;
    const int error = bind_error(address);
    if (error == EADDRINUSE) {
      // UDP sockets that share a port by SO_REUSEPORT or SO_REUSEADDR may be restored beside others.
      found.add(address.udp ? Grade::warns : Grade::refuses, "inet-address", object_place(text),
                "an address of the checkpoint is in use", "End the program that uses the address.");
    } else if (error == EADDRNOTAVAIL) {
      found.add(Grade::refuses, "inet-address", object_place(text),
                "this machine does not have an address of the checkpoint",
                "Give the address to an interface of this machine.");
    } else if (error != 0) {
      not_seen.push_back(text + ": " + std::strerror(error));
    }
  }
}

void look_at_criu(const PlannedRestore& planned, const std::optional<CriuChoice>& crius,
                  Findings& found, std::vector<std::string>& not_seen) {
  if (!crius) {
    if (!planned.container) not_seen.emplace_back("the version of CRIU: it was not found");
    return;
  }
  if (planned.container) return;  // its runtime starts the CRIU that it finds
  const Result<CriuProgram> chosen = crius->for_restore("", false, planned.criu_version);
  if (chosen) return;
  found.add(Grade::refuses, "images-broken",
            object_place("made by CRIU " + planned.criu_version + ", here is " +
                         crius->programs().front().version.text()),
            "CRIU is older here than the one that made the images",
            "Install that version of CRIU, or a newer one.");
}

bool is_older(const KernelVersion& one, const KernelVersion& other) {
  return one.major != other.major ? one.major < other.major : one.minor < other.minor;
}

void look_at_machine(const PlannedRestore& planned, Findings& found) {
  static const Machine kHere = this_machine();  // it takes long to read with many CPUs
  const Machine& here = kHere;
  const Machine& there = planned.machine;
  if (is_older(kernel_version(here.kernel), kernel_version(there.kernel))) {
    found.add(Grade::warns, "kernel-config",
              object_place("Linux " + there.kernel + " then, " + here.kernel + " now"),
              "the kernel is older than that of the dump",
              "Restore on a machine with this kernel, or a newer one.");
  }
  std::string lacking;
  std::size_t count = 0;
  const std::vector<std::string_view> flags = preflight::words_of(here.cpu_flags);
  for (const std::string_view flag : preflight::words_of(there.cpu_flags)) {
    if (std::find(flags.begin(), flags.end(), flag) != flags.end()) continue;
    if (++count <= kMaxListed) {
      lacking += lacking.empty() ? "" : " ";
      lacking += flag;
    }
  }
  if (count == 0 || flags.empty()) return;
  if (count > kMaxListed) lacking += " and " + std::to_string(count - kMaxListed) + " more";
  found.add(Grade::warns, "cpu-mismatch",
            object_place(lacking + "; " + there.cpu + " then, " + here.cpu + " now"));
}

// CRIU keeps there what it found out about the kernel, and kymod its socket.
void look_at_run(Findings& found) {
  constexpr std::uint64_t kNeeded = std::uint64_t{1} << 20U;
  struct statvfs seen {};
  if (::statvfs("/run", &seen) != 0) return;
  const std::uint64_t free = std::uint64_t{seen.f_bavail} * seen.f_frsize;
  if (free >= kNeeded) return;
  found.add(Grade::warns, "disk-full",
            object_place("/run, " + std::to_string(free) + " bytes free"),
            "/run is full, where CRIU and kymod keep small files", "Remove files from /run.");
}

// CRIU would mount them with folders of this machine: a container could read them, and write to them.
void look_at_misled_mounts(const std::vector<std::string>& mounts, Findings& found) {
  for (const std::string& mount : mounts) {
    found.add(Grade::refuses, "mnt-overlay", object_place(mount));
  }
}

// What the config.json of a container names of the machine.
void look_at_names(const PlannedRestore& planned, Findings& found) {
  if (planned.bundle.empty()) {
    preflight::look_at_host_names(planned.names, planned.names, found);
    return;
  }
  const std::string path = planned.bundle + "/config.json";
  const Result<std::string> text = read_file(path);
  if (!text) {
    found.add(Grade::refuses, "mnt-restore", object_place(path),
              "the bundle of the container cannot be read",
              "Put the bundle back, or name another one with --bundle.");
    return;
  }
  preflight::look_at_host_names(preflight::host_names_of(planned.bundle, *text), planned.names,
                                found);
}

}  // namespace

Machine this_machine() {
  Machine machine;
  utsname names{};
  if (::uname(&names) == 0) machine.kernel = static_cast<const char*>(names.release);
  if (const Result<std::string> text = read_file("/proc/cpuinfo"); text) {
    machine.cpu = cpu_value(*text, "model name");
    machine.cpu_flags = cpu_value(*text, "flags");
  }
  return machine;
}

json to_json(const Machine& machine) {
  return {{"kernel", machine.kernel}, {"cpu", machine.cpu}, {"cpu_flags", machine.cpu_flags}};
}

Machine machine_of(const json& object) {
  return {kymo::text_of(object, "kernel"), kymo::text_of(object, "cpu"),
          kymo::text_of(object, "cpu_flags")};
}

json to_json(const PlannedRestore& planned) {
  json files = json::array();
  for (const criu::NeededFile& file : planned.needs.files) {
    json one{{"path", file.path}, {"mode", file.mode}};
    if (file.size) one["size"] = *file.size;
    if (!file.build_id.empty()) one["build_id"] = file.build_id;
    files.push_back(std::move(one));
  }
  json addresses = json::array();
  for (const criu::NeededAddress& address : planned.needs.addresses) {
    addresses.push_back({{"ipv6", address.ipv6},
                         {"udp", address.udp},
                         {"address", address.address},
                         {"port", address.port}});
  }
  json huge_pages = json::array();
  for (const auto& [bytes, count] : planned.needs.huge_pages) {
    huge_pages.push_back({{"bytes", bytes}, {"count", count}});
  }
  json locks = json::array();
  for (const criu::NeededLock& lock : planned.needs.locks) {
    locks.push_back({{"path", lock.path},
                     {"whole", lock.whole},
                     {"exclusive", lock.exclusive},
                     {"start", lock.start},
                     {"length", lock.length}});
  }
  return {{"ids", planned.ids},
          {"locks", locks},
          {"huge_pages", huge_pages},
          {"processes", planned.processes},
          {"image_bytes", planned.image_bytes},
          {"files", files},
          {"addresses", addresses},
          {"changed", planned.needs.changed},
          {"misled_mounts", planned.needs.misled_mounts},
          {"own_mounts", planned.needs.own_mounts},
          {"own_network", planned.needs.own_network},
          {"notes", planned.needs.notes},
          {"faults", planned.faults},
          {"machine", to_json(planned.machine)},
          {"criu_version", planned.criu_version},
          {"container", planned.container},
          {"bundle", planned.bundle},
          {"names", preflight::to_json(planned.names)}};
}

Result<void> check_mounts(const PlannedRestore& planned) {
  Findings found;
  look_at_misled_mounts(planned.needs.misled_mounts, found);
  const std::vector<preflight::Finding> findings = found.take();
  return findings.empty() ? Result<void>()
                          : Error{Code::failed_precondition, preflight::line_of(findings.front())};
}

PlannedRestore planned_restore_of(const json& object) {
  PlannedRestore planned;
  for (const json& id : kymo::member(object, "ids")) {
    const std::uint64_t number = id.is_number_unsigned() ? id.get<std::uint64_t>() : 0;
    const bool is_pid = number > 0 && number <= std::numeric_limits<pid_t>::max();
    if (is_pid) planned.ids.push_back(static_cast<pid_t>(number));
  }
  planned.processes = kymo::number_of(object, "processes");
  planned.image_bytes = kymo::number_of(object, "image_bytes");
  for (const json& file : kymo::member(object, "files")) {
    criu::NeededFile needed{kymo::text_of(file, "path")};
    if (kymo::member(file, "size").is_number_unsigned())
      needed.size = kymo::number_of(file, "size");
    needed.mode = static_cast<std::uint32_t>(kymo::number_of(file, "mode"));
    needed.build_id = kymo::text_of(file, "build_id");
    planned.needs.files.push_back(std::move(needed));
  }
  for (const json& address : kymo::member(object, "addresses")) {
    planned.needs.addresses.push_back(
        {flag_in(address, "ipv6"), flag_in(address, "udp"), kymo::text_of(address, "address"),
         static_cast<std::uint16_t>(kymo::number_of(address, "port"))});
  }
  for (const json& lock : kymo::member(object, "locks")) {
    planned.needs.locks.push_back({kymo::text_of(lock, "path"), flag_in(lock, "whole"),
                                   flag_in(lock, "exclusive"), kymo::number_of(lock, "start"),
                                   kymo::number_of(lock, "length")});
  }
  for (const json& pages : kymo::member(object, "huge_pages")) {
    planned.needs.huge_pages[kymo::number_of(pages, "bytes")] = kymo::number_of(pages, "count");
  }
  planned.needs.changed = texts_in(object, "changed");
  planned.needs.misled_mounts = texts_in(object, "misled_mounts");
  planned.needs.own_mounts = flag_in(object, "own_mounts");
  planned.needs.own_network = flag_in(object, "own_network");
  planned.needs.notes = texts_in(object, "notes");
  planned.faults = texts_in(object, "faults");
  planned.machine = machine_of(kymo::member(object, "machine"));
  planned.criu_version = kymo::text_of(object, "criu_version");
  planned.container = flag_in(object, "container");
  planned.bundle = kymo::text_of(object, "bundle");
  planned.names = preflight::host_names_from(kymo::member(object, "names"));
  return planned;
}

preflight::Report look_before_restore(const PlannedRestore& planned,
                                      const std::optional<CriuChoice>& crius) {
  preflight::Report report;
  report.processes = planned.processes;
  report.not_seen = planned.needs.notes;
  Findings found;
  look_at_images(planned, found);
  look_at_criu(planned, crius, found, report.not_seen);
  look_at_machine(planned, found);
  look_at_pids(planned, found, report.not_seen);
  look_at_files(planned, found, report.not_seen);
  look_at_locks(planned, found);
  look_at_huge_pages(planned, found);
  look_at_addresses(planned, found, report.not_seen);
  look_at_misled_mounts(planned.needs.misled_mounts, found);
  look_at_names(planned, found);
  look_at_run(found);
  report.findings = found.take();
  return report;
}

}  // namespace kymo::runtime
