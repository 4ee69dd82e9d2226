#include "checkpoint/runtimes/host_check.h"

#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "checkpoint/criu/drive/breakpoints.h"
#include "checkpoint/criu/drive/client.h"
#include "checkpoint/runtimes/shared/command.h"
#include "checkpoint/runtimes/shared/criu_choice.h"
#include "checkpoint/runtimes/table.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using State = HostFinding::State;

constexpr std::chrono::seconds kOneCall(30);

criu::Client client_of(const std::string& criu) {
  criu::ClientOptions options;
  options.path = criu;
  options.timeout = kOneCall;
  return criu::Client(std::move(options));
}

std::string path_of(const std::string& criu) {
  return criu.find('/') == std::string::npos ? on_path(criu) : criu;
}

// Checks one criu. Adds it to `works` if it starts and passes its own check.
void check_one_criu(const std::string& criu, const std::string& name,
                    std::vector<HostFinding>& findings, std::vector<CriuProgram>& works) {
  const criu::Client client = client_of(criu);
  const auto version = client.version();
  if (!version) {
    findings.push_back({name, State::bad, version.error().message});
    return;
  }
  findings.push_back({name, State::good, version->text() + " at " + path_of(criu)});
  const Result<void> check = client.check();
  findings.push_back({name + " check", check ? State::good : State::bad,
                      check ? "this kernel has what CRIU needs" : check.error().message});
  if (check) {
    works.push_back({path_of(criu), "", *version});
  }
}

// Checks what the chosen versions of CRIU are too old for.
void check_age(const CriuChoice& choice, std::vector<HostFinding>& findings) {
  const criu::Version& version = choice.for_dump(false).version;
  const std::string too_old = too_old_for_kernel(version, choice.kernel());
  findings.push_back(
      {"internet sockets", too_old.empty() ? State::good : State::absent,
       too_old.empty() ? "CRIU " + version.text() + " dumps them on this kernel" : too_old});
  const criu::Version& of_roots = choice.for_dump(true).version;
  const bool kept = keeps_read_only_roots(of_roots);
  findings.push_back(
      {"read-only roots", kept ? State::good : State::absent,
       "CRIU " + of_roots.text() +
           (kept ? " restores a container's read-only root as it was"
                 : " restores a container's read-only root so that it can be written "
                   "to: use CRIU 4.2 or later")});
}

// kymod tells each CRIU that it starts itself. containerd and Docker start theirs.
void check_breakpoints(std::vector<HostFinding>& findings) {
  const bool work = criu::hardware_breakpoints_work();
  findings.push_back(
      {"breakpoints", work ? State::good : State::absent,
       work ? "hardware breakpoints work"
            : "hardware breakpoints do not work in this machine: a CRIU before 4.2 that kymod does "
              "not start itself hangs; set CRIU_FAULT=130 in its environment, or use CRIU 4.2"});
}

void check_features(const std::string& criu, std::vector<HostFinding>& findings) {
  const auto features = client_of(criu).features();
  const auto add = [&](const char* what, bool there, const char* with, const char* without) {
    findings.push_back({what, there ? State::good : State::absent, there ? with : without});
  };
  if (!features) {
    findings.push_back({"features", State::absent, features.error().message});
    return;
  }
  add("dirty tracking", features->dirty_tracking, "pre-dump can leave out what did not change",
      "the kernel lacks CONFIG_MEM_SOFT_DIRTY: no pre-dump, every dump writes all memory");
  add("lazy pages", features->lazy_pages, "memory can be fetched after the restore",
      "the kernel's userfaultfd does not do what CRIU needs: no lazy restore");
}

// Checks both criu, and returns the path of the one that dumps usually use. Empty if none works.
std::string check_criu(const std::string& criu, const std::string& fallback,
                       std::vector<HostFinding>& findings) {
  std::vector<CriuProgram> works;
  check_one_criu(criu, "criu", findings, works);
  if (!fallback.empty()) {
    check_one_criu(fallback, "criu fallback", findings, works);
  }
  if (works.empty()) {
    return {};
  }
  const CriuChoice choice(std::move(works), running_kernel());
  check_age(choice, findings);
  check_breakpoints(findings);
  std::string used = choice.for_dump(false).path;
  check_features(used, findings);
  return used;
}

void check_kernel(std::vector<HostFinding>& findings) {
  struct statfs run {};
  const bool in_memory = ::statfs("/run", &run) == 0 && run.f_type == TMPFS_MAGIC;
  findings.push_back(
      {"/run", in_memory ? State::good : State::absent,
       in_memory
           ? "a tmpfs: CRIU stores there what it has found out about the kernel"
           : "not a tmpfs: CRIU examines the kernel again in each call, which takes 20 to 50 ms"});
  std::error_code error;
  const bool v2 = fs::exists("/sys/fs/cgroup/cgroup.controllers", error);
  const bool v1 = fs::exists("/sys/fs/cgroup/freezer", error);
  findings.push_back({"cgroups", v1 || v2 ? State::good : State::absent,
                      v2   ? "version 2"
                      : v1 ? "version 1: CRIU checks the freezer of a container only every 100 ms, "
                             "and the dump waits for that"
                           : "none: containers cannot be frozen"});
}

// A criu that a container runtime finds. `text` has its version and its path, or what is wrong.
struct FoundCriu {
  std::string path;  // empty: there is none
  bool works = false;
  std::string text;
};

FoundCriu criu_at(const std::string& path) {
  if (path.empty()) return {"", false, "none: PATH has no criu"};
  const auto version = client_of(path).version();
  if (!version) {
    return {path, false,
            path + " does not start: put the folder of a criu that starts first in PATH"};
  }
  return {path, true, version->text() + " at " + path};
}

// Returns how an OCI runtime uses CRIU, for the text about the criu that it finds. Empty if it
// starts the criu on PATH.
std::string how_it_uses_criu(const std::string& runtime) {
  if (runtime == "runc") return {};
  if (runtime == "crun") return ", by its libcriu";
  return ", if " + runtime + " knows checkpoints at all";
}

void add_container_runtime(const std::string& name, const OciRuntime& oci, const FoundCriu& criu,
                           std::vector<HostFinding>& findings) {
  const State state = criu.works ? State::good : State::absent;
  std::string detail = criu.text + how_it_uses_criu(oci.name);
  if (!oci.path.empty()) detail += " through " + oci.name + " at " + oci.path;
  findings.push_back({"criu of " + name, state, std::move(detail)});
}

// The path of this criu. Empty if it cannot be started.
std::string startable(const std::string& criu) {
  std::string path = path_of(criu);
  return !path.empty() && ::access(path.c_str(), X_OK) == 0 ? path : std::string();
}

// Container runtimes look for criu on PATH. kymod puts the folder of its own criu first on their
// PATH.
void check_container_runtimes(const std::string& criu, const RuntimeSettings& settings,
                              std::vector<HostFinding>& findings) {
  const std::string ours = startable(criu);
  const FoundCriu by_kymod = criu_at(ours.empty() ? on_path("criu") : ours);
  for (const RuntimeRow& row : runtime_table()) {
    if (row.oci_runtime == nullptr) continue;
    const std::string name(row.name);
    const std::string path = on_path(name);
    findings.push_back({name, path.empty() ? State::absent : State::good,
                        path.empty() ? "not on PATH: install it to dump its containers"
                                     : first_line_of({name, "--version"}) + " at " + path});
    if (path.empty()) continue;
    const Result<OciRuntime> oci = row.oci_runtime(settings);
    if (oci && !oci->search_path.empty()) {  // kymod does not set this PATH
      add_container_runtime(name, *oci, criu_at(on_path("criu", oci->search_path)), findings);
    } else if (oci) {
      add_container_runtime(name, *oci, by_kymod, findings);
    } else {
      findings.push_back({"criu of " + name, State::absent, oci.error().message});
    }
  }
}

}  // namespace

std::vector<HostFinding> check_host(const std::string& criu, const std::string& criu_fallback,
                                    const RuntimeSettings& settings) {
  std::vector<HostFinding> findings;
  const bool root = ::geteuid() == 0;
  findings.push_back(
      {"root", root ? State::good : State::bad,
       root ? "running as root" : "CRIU needs root, or the capabilities it asks for: use sudo"});
  const std::string used = check_criu(criu, criu_fallback, findings);
  check_kernel(findings);
  check_container_runtimes(used.empty() ? criu : used, settings, findings);
  return findings;
}

std::optional<HostFinding> check_criu_by_hand(const std::string& criu) {
  const std::string ours = startable(criu);
  const std::string theirs = on_path("criu");
  std::error_code ignored;
  if (ours.empty() || ours == theirs || fs::equivalent(ours, theirs, ignored)) return {};
  const FoundCriu found = criu_at(theirs);
  return HostFinding{"criu by hand", found.works ? State::good : State::absent,
                     "runc and podman that kymod does not start find " + found.text};
}

}  // namespace kymo::runtime
