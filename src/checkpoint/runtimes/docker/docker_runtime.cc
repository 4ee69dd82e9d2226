#include "checkpoint/runtimes/docker/docker_runtime.h"

#include <httplib.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_object.h"
#include "base/json_text.h"
#include "checkpoint/runtimes/shared/killed_restore.h"
#include "checkpoint/runtimes/shared/option_checks.h"
#include "checkpoint/runtimes/shared/run_call.h"
#include "checkpoint/runtimes/shared/server.h"
#include "checkpoint/runtimes/shared/server_runtime.h"

namespace kymo::runtime {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr char kDockersFolder[] = "docker";  // Docker makes it for the images
constexpr char kShim[] = "/shim";            // leads to the shim's folder in a restore

// What a call says of its failure if the container that it starts runs already.
constexpr char kSoAlready[] = "Docker says that it is so already";

// Docker's Engine API, at the socket that DOCKER_HOST names (unix://PATH), else at /var/run/docker.sock.
//
// Threads: every member from any thread.
// Errors:  unavailable if no program serves the socket, deadline_exceeded if it does not answer, not_found, or what
//          Docker says.
// Cost:    a connection and a request each.
class DockerApi {
 public:
  static constexpr milliseconds kSoon{10'000};  // for a call that needs no CRIU

  DockerApi();
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] Result<json> get(const std::string& path, milliseconds patience = kSoon) const;
  // A call to a container, such as "pause", that needs no CRIU.
  [[nodiscard]] Result<void> post(const std::string& id, const std::string& verb) const;
  // The same with CRIU. `limits` and the outcome are those of run_call().
  [[nodiscard]] Result<CommandOutcome> post(const std::string& id, const std::string& verb,
                                            const std::string& body, const Command& limits) const;

 private:
  std::string socket_ = "/var/run/docker.sock";
  std::string refused_;  // why DOCKER_HOST is of no use
};

struct Client : httplib::Client {
  Client(const std::string& socket, milliseconds patience) : httplib::Client(socket) {
    set_address_family(AF_UNIX);
    set_connection_timeout(patience);
    set_read_timeout(patience);
    // The name of the host would be the path of the socket, which Docker refuses.
    set_default_headers({{"Host", "docker"}});
  }
};

Result<std::string> answer_of(const httplib::Result& got, const std::string& socket) {
  if (!got && got.error() == httplib::Error::Connection) {
    return Error{Code::unavailable,
                 "no program listens on " + socket +
                     ": start Docker, or set DOCKER_HOST to its socket when you start kymod"};
  }
  if (!got) return Error{Code::deadline_exceeded, "Docker does not answer"};
  if (got->status / 100 == 2) return got->body;
  if (got->status == 304) return Error{Code::already_exists, kSoAlready};
  std::string why = text_of(parse_object(got->body), "message");
  why.resize(std::min(why.size(), why.find('\n')));  // what follows names a log that is gone
  return Error{got->status == 404 ? Code::not_found : Code::failed_precondition,
               why.empty() ? "Docker answers " + std::to_string(got->status) : why};
}

DockerApi::DockerApi() {
  constexpr std::string_view kUnix = "unix://";
  const char* const named = std::getenv("DOCKER_HOST");
  const std::string_view host = named == nullptr ? "" : named;
  if (host.starts_with(kUnix)) {
    socket_ = host.substr(kUnix.size());
  } else if (!host.empty()) {
    refused_ = "DOCKER_HOST is " + std::string(host) +
               ": set it to a unix socket of this machine (unix://PATH) when you start kymod";
  }
}

Result<json> DockerApi::get(const std::string& path, milliseconds patience) const {
  if (!refused_.empty()) return Error{Code::unavailable, refused_};
  Client client(socket_, patience);
  const Result<std::string> answer = answer_of(client.Get(path.c_str()), socket_);
  if (!answer) return answer.error();
  return parse_object(*answer);
}

Result<CommandOutcome> DockerApi::post(const std::string& id, const std::string& verb,
                                       const std::string& body, const Command& limits) const {
  constexpr std::chrono::hours kForever{24 * 365};  // run_call() ends it
  Client client(socket_, kForever);
  const std::string path = "/containers/" + id + "/" + verb;
  const auto call = [&]() -> Result<void> {
    const auto answer = answer_of(client.Post(path.c_str(), body, "application/json"), socket_);
    return answer ? Result<void>() : answer.error();
  };
  return run_call(limits, call, [&] { client.stop(); });
}

Result<void> DockerApi::post(const std::string& id, const std::string& verb) const {
  Command limits;
  limits.timeout = kSoon;
  const Result<CommandOutcome> done = post(id, verb, "", limits);
  if (!done) return done.error();
  return done->exit_status == 0 ? Result<void>() : Error{Code::failed_precondition, done->errors};
}

class DockerRuntime : public ServerRuntime {
 public:
  explicit DockerRuntime(DockerRuntimeOptions options)
      : ServerRuntime("Docker", "docker", options.timeout) {}

  Result<ProcessId> run(const RunSpec& spec) override;
  Result<Container> find(const std::string& container) override;
  Result<void> may_dump(const DumpSpec& spec) override;
  Result<void> may_restore(const RestoreSpec& spec) override;
  Result<RestoreOutcome> restore(const RestoreSpec& spec, const Observer& observer) override;
  [[nodiscard]] Result<std::string> server_path() const override;

 private:
  Result<ServedContainer> look_up(const std::string& id, milliseconds patience) const override;
  [[nodiscard]] Result<void> pause(const std::string& id) const override {
    return docker_.post(id, "pause");
  }
  [[nodiscard]] Result<void> resume(const std::string& id) const override {
    return docker_.post(id, "unpause");
  }
  [[nodiscard]] Result<CommandOutcome> make_images(const DumpSpec& spec, bool leave_running,
                                                   const Command& limits) const override;
  // Docker's own way, in which CRIU ends the container, loses it if a disk is full.
  [[nodiscard]] bool ends_by_kymod(const DumpSpec& spec) const override {
    return !spec.leave_running;
  }
  [[nodiscard]] std::string dump_log(const DumpSpec& spec) const override;
  // So that Docker does not start it by its restart policy.
  void note_end(const DumpSpec& spec) const override {
    static_cast<void>(docker_.post(spec.container, "kill").ok());
  }
  [[nodiscard]] Result<json> inspect(const std::string& tried, const std::string& name) const;
  [[nodiscard]] Result<void> check(const std::string& tried, const CheckpointOptions& all) const;
  Result<CommandOutcome> restore_by_docker(const RestoreSpec& spec, const Command& limits) const;

  DockerApi docker_;
};

ServedContainer served(const json& seen) {
  const json& state = member(seen, "State");
  if (member(state, "Running") != json(true)) return {};
  return {static_cast<pid_t>(number_of(state, "Pid")), member(state, "Paused") == json(true)};
}

Result<ServedContainer> DockerRuntime::look_up(const std::string& id, milliseconds patience) const {
  const Result<json> seen = docker_.get("/containers/" + id + "/json", patience);
  if (!seen) return seen.error();
  return text_of(*seen, "Id") == id ? served(*seen) : ServedContainer{};
}

Result<ProcessId> DockerRuntime::run(const RunSpec& spec) {
  Command docker;
  docker.words = {"docker", "--host", "unix://" + docker_.socket()};
  docker.environment = environment_with_path("");
  docker.timeout = timeout();
  const auto reason = [](const std::string& errors) {
    const std::size_t at = errors.find("docker: ");  // behind how it looked for the image
    const std::string why = errors.substr(at == std::string::npos ? 0 : at);
    return why.substr(0, why.find('\n'));
  };
  return run_by_program(docker, {"rm", "--force"}, spec, reason,
                        [this](const std::string& id) { return find(id); });
}

Result<json> DockerRuntime::inspect(const std::string& tried, const std::string& name) const {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
  });
  if (name.empty() || !plain || std::isalnum(static_cast<unsigned char>(name.front())) == 0) {
    return Error{Code::invalid_argument,
                 tried +
                     ": a name of Docker has only [A-Za-z0-9_.-] and begins with a letter or a "
                     "digit"};
  }
  Result<json> seen = docker_.get("/containers/" + name + "/json");
  if (seen) return seen;
  const bool absent = seen.error().code == Code::not_found;
  return Error{seen.error().code,
               tried + ": " +
                   (absent ? "Docker has no such container (docker ps -a shows them), and restores "
                             "a checkpoint only into its own container"
                           : seen.error().message)};
}

Result<Container> DockerRuntime::find(const std::string& container) {
  const std::string tried = "container " + container;
  const Result<json> seen = inspect(tried, container);
  if (!seen) return seen.error();
  if (served(*seen).pid == 0) {
    return Error{Code::failed_precondition, tried + ": it is not running (it is " +
                                                text_of(member(*seen, "State"), "Status") +
                                                "): use docker start " + container};
  }
  Container found = container_that_runs_as(served(*seen).pid);
  found.id = text_of(*seen, "Id");
  const std::string name = text_of(*seen, "Name");  // "/web"
  found.name = name.empty() ? container : name.substr(1);
  return found;
}

// Docker's runc looks for criu on the PATH of the containerd that dockerd has started, else of the one that dockerd's flag
// --containerd names, else of the usual one.
Result<std::string> DockerRuntime::server_path() const {
  // First make sure that Docker answers: its errors say what to do.
  if (const Result<json> answers = docker_.get("/info"); !answers) return answers.error();
  std::vector<pid_t> all = probe::all_processes();  // systemd may have made the socket
  if (const Result<pid_t> server = server_of(docker_.socket())) all.insert(all.begin(), *server);
  for (const pid_t pid : all) {
    const Result<probe::Process> dockerd = probe::read_process(pid);
    if (!dockerd || dockerd->name != "dockerd" || !is_of_root(*dockerd, "dockerd")) continue;
    const Result<std::vector<pid_t>> children = probe::children_of(pid);
    for (const pid_t child : children ? *children : std::vector<pid_t>()) {
      const Result<probe::Process> seen = probe::read_process(child);
      if (seen && is_of_root(*seen, "containerd")) return path_of(child);
    }
    std::string socket = "/run/containerd/containerd.sock";
    for (auto word = dockerd->command.begin(); word != dockerd->command.end(); ++word) {
      if (word->starts_with("--containerd=")) socket = word->substr(word->find('=') + 1);
      if (*word == "--containerd" && word + 1 != dockerd->command.end()) socket = *(word + 1);
    }
    const Result<pid_t> containerd = server_of(socket);
    return containerd ? path_of(*containerd) : containerd.error();
  }
  return Error{Code::failed_precondition,
               "kymod sees no dockerd of root, so it cannot find out which criu Docker uses: start "
               "kymod in the pid namespace of Docker"};
}

Result<void> DockerRuntime::check(const std::string& tried, const CheckpointOptions& all) const {
  Result<void> good = refuse_options(tried, all, {}, {}, "Docker has no way to pass it on to CRIU");
  if (!good) return good;
  const Result<json> info = docker_.get("/info");
  if (!info) return Error{info.error().code, tried + ": " + info.error().message};
  if (member(*info, "ExperimentalBuild") == json(true)) return {};
  return Error{Code::failed_precondition,
               tried +
                   ": Docker has checkpoints only with its experimental features: put "
                   "{\"experimental\": true} into /etc/docker/daemon.json and restart Docker"};
}

Result<void> DockerRuntime::may_dump(const DumpSpec& spec) {
  const std::string tried = "dump container " + name_of_container(spec);
  if (Result<void> good = check(tried, spec.options); !good) return good;
  if (const auto process = check_target(spec); !process) return process.error();
  const Result<json> seen = inspect(tried, spec.container);
  if (!seen) return seen.error();
  const bool removed = member(member(*seen, "HostConfig"), "AutoRemove") == json(true);
  if (!removed || spec.leave_running) return {};
  return Error{Code::failed_precondition,
               tried +
                   ": it was started with --rm, so Docker would remove it and it could not be "
                   "restored: use --leave-running, or start it without --rm"};
}

// Without inventory.img no reader takes the other images for a checkpoint, so it is moved last.
Result<void> take_images(const fs::path& images_dir) {
  const fs::path from = images_dir / kDockersFolder;
  std::vector<fs::path> names;
  std::error_code error;
  for (fs::directory_iterator one(from, error), end; !error && one != end; one.increment(error)) {
    names.push_back(one->path().filename());
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const fs::path& name) { return name != "inventory.img"; });
  for (const fs::path& name : names) {
    if (!error) fs::rename(from / name, images_dir / name, error);
  }
  if (!error) fs::remove(from, error);
  return error ? Result<void>(
                     system_error("take Docker's images from " + from.string(), error.value()))
               : Result<void>();
}

Result<CommandOutcome> DockerRuntime::make_images(const DumpSpec& spec, bool /*leave_running*/,
                                                  const Command& limits) const {
  const json asked{
      {"CheckpointID", kDockersFolder}, {"CheckpointDir", spec.images_dir}, {"Exit", false}};
  Result<CommandOutcome> done =
      docker_.post(spec.container, "checkpoints", json_text(asked), limits);
  if (!done || done->exit_status != 0) return done;
  const Result<void> taken = take_images(spec.images_dir);
  return taken ? done : taken.error();
}

// In the work folder of containerd's shim. Docker removes it after the dump.
std::string DockerRuntime::dump_log(const DumpSpec& spec) const {
  const Result<probe::Process> seen = probe::read_process(spec.process.pid);
  return (seen ? folder_of_shim(seen->parent, "work") : "") + "/criu-work/dump.log";
}

Result<void> DockerRuntime::may_restore(const RestoreSpec& spec) {
  const std::string tried = "restore container " + name_of_container(spec);
  if (Result<void> good = check(tried, spec.options); !good) return good;
  const Result<json> seen = inspect(tried, spec.container);
  if (!seen || served(*seen).pid == 0) return seen ? Result<void>() : seen.error();
  return Error{Code::already_exists, tried + ": it runs: use docker stop, or restore it later"};
}

// Docker restores only what is in its folder of the container's checkpoints. The name is new each time: containerd appends
// to what a restore of the same name that was cut short has left in its store.
Result<CommandOutcome> DockerRuntime::restore_by_docker(const RestoreSpec& spec,
                                                        const Command& limits) const {
  const Result<json> info = docker_.get("/info");
  if (!info) return info.error();
  const fs::path folder =
      fs::path(text_of(*info, "DockerRootDir")) / "containers" / spec.container / "checkpoints";
  const std::string name = "kymo-" + std::to_string(monotonic_ns());
  std::error_code error;
  fs::create_directories(folder, error);
  fs::copy(spec.images_dir, folder / name,
           fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
  const ShimLink shim(spec.container, spec.work_dir + kShim);
  Result<CommandOutcome> done =
      error ? system_error("copy the images to " + folder.string(), error.value())
            : docker_.post(spec.container, "start?checkpoint=" + name, "", limits);
  fs::remove_all(folder / name, error);
  // If kymod gave up the call, Docker may still restore the container.
  const auto seen = done ? ServedContainer() : look_up(spec.container, kAnswersWithin);
  if (seen && seen->pid != 0) static_cast<void>(docker_.post(spec.container, "kill").ok());
  return done;
}

Result<RestoreOutcome> DockerRuntime::restore(const RestoreSpec& spec, const Observer& observer) {
  if (Result<void> good = may_restore(spec); !good) return good.error();
  const std::string tried = "could not restore container " + name_of_container(spec);
  ContainerCall restore = call_of("restore", spec);
  restore.growing_log = spec.work_dir + kShim + "/restore.log";
  restore.stats_path.clear();
  restore.says_taken = kSoAlready;
  restore.cgroups = {spec.container, "docker-" + spec.container + ".scope"};
  const Result<void> removed =
      remove_killed_restore(spec.container, "/run/docker/runtime-runc/moby/" + spec.container,
                            restore.cgroups, spec.work_dir);
  if (!removed) return Error{removed.error().code, tried + ": " + removed.error().message};
  restore.run = [&](const Command& limits) { return restore_by_docker(spec, limits); };
  Result<RestoreOutcome> outcome = restore_container(spec, std::move(restore), observer);
  return outcome ? with_process(*std::move(outcome), spec) : outcome;
}

}  // namespace

std::unique_ptr<Runtime> make_docker_runtime(DockerRuntimeOptions options) {
  return std::make_unique<DockerRuntime>(options);
}

Result<OciRuntime> oci_runtime_of_docker() {
  const Result<std::string> path = DockerRuntime({}).server_path();
  if (!path) return path.error();
  return OciRuntime{"runc", on_path("runc", *path), *path};
}

}  // namespace kymo::runtime
