#include "runtime/host_check.h"

#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

#include "criu/client.h"
#include "runtime/criu_choice.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

constexpr std::chrono::seconds kOneCall(30);

criu::Client client_of(const std::string& criu) {
  criu::ClientOptions options;
  options.path = criu;
  options.timeout = kOneCall;
  return criu::Client(std::move(options));
}

// The first line that a fixed command prints.
std::string first_line(const std::string& command) {
  struct Close {
    void operator()(std::FILE* pipe) const { ::pclose(pipe); }
  };
  const std::unique_ptr<std::FILE, Close> pipe(::popen((command + " 2>/dev/null").c_str(), "re"));
  std::array<char, 256> text{};
  if (pipe == nullptr || std::fgets(text.data(), text.size(), pipe.get()) == nullptr) {
    return {};
  }
  std::string line = text.data();
  line.erase(line.find_last_not_of("\r\n ") + 1);
  return line;
}

std::string path_of(const std::string& criu) {
  return criu.find('/') == std::string::npos ? on_path(criu) : criu;
}

// Those that start and pass their check are added to `works`.
void check_one_criu(const std::string& criu, const std::string& name,
                    std::vector<Finding>& findings, std::vector<CriuProgram>& works) {
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

// What the version that is used is too old for.
void check_age(const CriuChoice& choice, std::vector<Finding>& findings) {
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

void check_features(const std::string& criu, std::vector<Finding>& findings) {
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

// The criu that is used for most things; empty: there is none.
std::string check_criu(const std::string& criu, const std::string& fallback,
                       std::vector<Finding>& findings) {
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
  std::string used = choice.for_dump(false).path;
  check_features(used, findings);
  return used;
}

void check_kernel(std::vector<Finding>& findings) {
  struct statfs run {};
  const bool in_memory = ::statfs("/run", &run) == 0 && run.f_type == TMPFS_MAGIC;
  findings.push_back({"/run", in_memory ? State::good : State::absent,
                      in_memory ? "a tmpfs: CRIU keeps there what it found out about the kernel"
                                : "no tmpfs: CRIU looks at the kernel anew with each call, which "
                                  "takes it 20 to 50 ms"});
  std::error_code error;
  const bool v2 = fs::exists("/sys/fs/cgroup/cgroup.controllers", error);
  const bool v1 = fs::exists("/sys/fs/cgroup/freezer", error);
  findings.push_back({"cgroups", v1 || v2 ? State::good : State::absent,
                      v2   ? "version 2"
                      : v1 ? "version 1: a container's freezer is looked at every 100 ms only, "
                             "which its dump waits for"
                           : "none: containers cannot be frozen"});
}

// A criu as a runtime finds it: its version and where it is, or what is wrong with it.
struct FoundCriu {
  std::string path;  // empty: there is none
  bool works = false;
  std::string text;
};

FoundCriu criu_at(const std::string& path) {
  if (path.empty()) return {"", false, "none: PATH has no criu"};
  const auto version = client_of(path).version();
  if (!version) {
    return {path, false, path + " does not start: put the folder of one that does first in PATH"};
  }
  return {path, true, version->text() + " at " + path};
}

// What a runtime does about CRIU, for the words beside the criu that it finds; empty for one that
// starts the criu of PATH by itself.
std::string way_to_criu(const std::string& runtime) {
  if (runtime == "runc") return {};
  if (runtime == "crun") return ", by its libcriu";
  return ", if " + runtime + " knows checkpoints at all";
}

void add_container_runtime(const std::string& name, const std::string& runtime,
                           const std::string& through, const FoundCriu& by_kymod,
                           const FoundCriu& by_path, std::vector<Finding>& findings) {
  const State state = by_kymod.works ? State::good : State::absent;
  std::error_code ignored;
  const bool same =
      by_kymod.path == by_path.path || fs::equivalent(by_kymod.path, by_path.path, ignored);
  std::string detail = by_kymod.text + way_to_criu(runtime) + through;
  if (!same) detail += "; without kymod " + by_path.text;
  findings.push_back({"criu of " + name, state, std::move(detail)});
}

// runc and podman's runtime look for criu by name. kymod puts the folder of its own first on their
// PATH; whoever starts them by hand gets the one that PATH has.
void check_container_runtimes(const std::string& criu, std::vector<Finding>& findings) {
  const std::string ours = path_of(criu);
  const FoundCriu by_path = criu_at(on_path("criu"));
  const bool there = !ours.empty() && ::access(ours.c_str(), X_OK) == 0;
  const FoundCriu by_kymod = there && ours != by_path.path ? criu_at(ours) : by_path;
  for (const std::string name : {"runc", "podman"}) {
    const std::string path = on_path(name);
    findings.push_back({name, path.empty() ? State::absent : State::good,
                        path.empty() ? "not on PATH: install it to dump its containers"
                                     : first_line(name + " --version") + " at " + path});
    if (path.empty()) continue;
    if (name == "runc") {
      add_container_runtime(name, name, "", by_kymod, by_path, findings);
      continue;
    }
    const std::string runtime = first_line("podman info --format '{{.Host.OCIRuntime.Name}}'");
    const std::string at = first_line("podman info --format '{{.Host.OCIRuntime.Path}}'");
    if (runtime.empty()) {
      findings.push_back({"criu of podman", State::absent,
                          "podman info does not tell its runtime: see what it says itself"});
      continue;
    }
    add_container_runtime(name, runtime, " through " + runtime + " at " + at, by_kymod, by_path,
                          findings);
  }
}

}  // namespace

std::string on_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/usr/sbin:/usr/bin:/sbin:/bin";
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    std::string candidate = std::string(path.substr(0, colon)) + "/" + name;
    std::error_code error;
    if (candidate.front() == '/' && fs::is_regular_file(candidate, error) &&
        ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    path = colon == std::string_view::npos ? std::string_view() : path.substr(colon + 1);
  }
  return {};
}

std::vector<Finding> check_host(const std::string& criu, const std::string& criu_fallback) {
  std::vector<Finding> findings;
  const bool root = ::geteuid() == 0;
  findings.push_back(
      {"root", root ? State::good : State::bad,
       root ? "running as root" : "CRIU needs root, or the capabilities it asks for: use sudo"});
  const std::string used = check_criu(criu, criu_fallback, findings);
  check_kernel(findings);
  check_container_runtimes(used.empty() ? criu : used, findings);
  return findings;
}

}  // namespace kymo::runtime
