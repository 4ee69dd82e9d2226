#include "checkpoint/preflight/host_names.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/json_object.h"

namespace kymo::preflight {
namespace {

namespace fs = std::filesystem;

constexpr char kNamespace[] = "namespace";
constexpr char kGone[] = "namespace-gone";

Place place_of(const HostName& name) {
  Place place;
  place.object = name.path;
  if (name.kind == "mount") place.object += ", mounted at " + name.of;
  if (name.kind == "root") place.object += ", the root";
  if (name.kind == "hook") place.object += ", a hook of " + name.of;
  if (name.kind == kNamespace) place.object += ", the " + name.of + " namespace";
  return place;
}

// What an operator does about a link.
std::string remedy_of_link(const std::string& link) {
  std::error_code error;
  const fs::path real = fs::canonical(link, error);
  if (error) return "Put the folder or file itself there.";
  const std::string in_place =
      fs::is_directory(real, error)
          ? "Put a folder there and mount --bind " + real.string() + " on it"
          : "Run cp --remove-destination " + real.string() + " " + link;
  return in_place + ", or start the container with what the link leads to.";
}

// runc follows a link in the place of a mount's source when it starts the container, but CRIU 4.2 does not in a restore
// ("Failed to move_mount ...: Invalid argument"). Docker has such a mount for `docker run --init` if docker-init is a
// link, as on Debian.
void look_at_path(const HostName& name, Findings& found) {
  const bool mount = name.kind == "mount";
  struct stat seen {};
  if (::stat(name.path.c_str(), &seen) != 0) {
    const bool gone = errno == ENOENT || errno == ENOTDIR;
    if (gone && mount) {
      found.add(Grade::refuses, "mnt-restore", place_of(name),
                "the source of a mount of the container is not there", "Put it back.");
    } else if (gone) {
      found.add(Grade::refuses, "host-name-gone", place_of(name));
    }
    return;
  }
  if (!mount || ::lstat(name.path.c_str(), &seen) != 0 || !S_ISLNK(seen.st_mode)) return;
  found.add(Grade::refuses, "mnt-restore", place_of(name),
            "the source of a mount is a symbolic link, which CRIU does not follow in a restore",
            remedy_of_link(name.path));
}

// The kind of a namespace by its name in config.json.
std::optional<Kind> kind_of(std::string_view type) {
  if (type == "network") type = "net";
  if (type == "mount") type = "mnt";
  const auto* const at = std::find(kKinds.begin(), kKinds.end(), type);
  if (at == kKinds.end()) return std::nullopt;
  return Kind{static_cast<std::uint8_t>(at - kKinds.begin())};
}

// "net:[4026531840]" of the namespace at this path; empty: there is none.
std::string namespace_at(const std::string& path, Kind kind) {
  struct stat seen {};
  struct statfs on {};
  if (::stat(path.c_str(), &seen) != 0 || ::statfs(path.c_str(), &on) != 0) return {};
  if (on.f_type != NSFS_MAGIC) return {};
  return std::string(kKinds[static_cast<std::size_t>(kind)]) + ":[" + std::to_string(seen.st_ino) +
         "]";
}

// runc joins the others in a restore, too. Tried with 1.1.5.
bool is_refused(const HostName& name, Findings& found) {
  const bool refused = name.of == "cgroup" || name.of == "mount";
  if (refused) {
    found.add(Grade::refuses, kGone, place_of(name),
              "runc cannot restore a container that joins a cgroup or mount namespace",
              "Start the container with a namespace of its own.");
  }
  return refused;
}

void look_before_dump(const Tree& tree, const Options& options, Findings& found) {
  for (const HostName& name : options.names) {
    if (name.kind != kNamespace) {
      look_at_path(name, found);
      continue;
    }
    const std::optional<Kind> kind = kind_of(name.of);
    if (!kind || is_refused(name, found)) continue;
    const std::string& own = tree.first().namespaces.of(*kind);
    if (own.empty()) continue;
    if (namespace_at(name.path, *kind) == own) {
      if (name.holder.empty()) continue;
      found.add(Grade::warns, kGone, place_of(name),
                "a process whose namespace the container shares must run on until the restore",
                "Restore the container before that process ends or is started again.");
      continue;
    }
    found.add(Grade::refuses, kGone, place_of(name),
              "the namespace that the container has joined is no longer the one that its "
              "config.json names",
              "Restart the container, so that it joins the one that is there now.");
  }
}

void look_at_namespace(const HostName& name, const std::vector<HostName>& then, Findings& found) {
  if (is_refused(name, found)) return;
  const std::string holder = holder_of(name.path);
  const auto before = std::find_if(then.begin(), then.end(), [&](const HostName& other) {
    return other.kind == kNamespace && other.path == name.path;
  });
  // Another path that somebody has put into config.json since is meant.
  const bool meant = before == then.end() ? !then.empty() : before->holder == holder;
  struct stat seen {};
  if ((holder.empty() || meant) && ::stat(name.path.c_str(), &seen) == 0) return;
  found.add(Grade::refuses, kGone, place_of(name));
}

constexpr std::array kNameChecks{Check{"names of the host", look_before_dump}};

}  // namespace

std::span<const Check> name_checks() {
  return kNameChecks;
}

void leave_out_renewed(std::vector<HostName>& names, std::string_view renewed,
                       const std::string& id) {
  constexpr std::size_t kWholeId = 64;  // others may be in any path
  std::erase_if(names, [&](const HostName& name) {
    const bool its_own = name.kind == kNamespace && name.holder.empty() &&
                         renewed.find(name.of) != std::string_view::npos;
    return its_own || renewed.find(name.kind) != std::string_view::npos ||
           (name.kind == "mount" && id.size() == kWholeId &&
            name.path.find(id) != std::string::npos);
  });
}

void look_at_host_names(const std::vector<HostName>& now, const std::vector<HostName>& then,
                        Findings& found) {
  for (const HostName& name : now) {
    if (name.kind == kNamespace) {
      look_at_namespace(name, then, found);
    } else {
      look_at_path(name, found);
    }
  }
}

Result<void> check_host_names(const std::string& tried, const std::vector<HostName>& now,
                              const std::vector<HostName>& then) {
  Findings found;
  look_at_host_names(now, then, found);
  const std::vector<Finding> findings = found.take();
  if (findings.empty()) return {};
  return Error{Code::failed_precondition, tried + ": it would fail: " + line_of(findings.front())};
}

nlohmann::json to_json(const std::vector<HostName>& names) {
  nlohmann::json array = nlohmann::json::array();
  for (const HostName& name : names) {
    array.push_back(
        {{"kind", name.kind}, {"path", name.path}, {"of", name.of}, {"holder", name.holder}});
  }
  return array;
}

std::vector<HostName> host_names_from(const nlohmann::json& array) {
  std::vector<HostName> names;
  for (const nlohmann::json& name : array) {
    names.push_back({text_of(name, "kind"), text_of(name, "path"), text_of(name, "of"),
                     text_of(name, "holder")});
  }
  return names;
}

}  // namespace kymo::preflight
