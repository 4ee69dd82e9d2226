#include "support/docker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "support/shell.h"
#include "support/stop_child.h"

namespace kymo::test {
namespace {

constexpr char kImage[] = "kymo-test-busybox";

// The user daemon needs subordinate ids for it (subuid(5)).
constexpr char kWithUserNamespaces[] = R"({"experimental": true, "userns-remap": "daemon"})";

}  // namespace

const std::string& why_no_docker() {
  static const std::string kWhy =
      !why_no_runc().empty()                       ? why_no_runc()
      : !shell("containerd --version 2>&1").second ? "containerd is not installed"
      : shell("dockerd --version 2>&1 && docker --version 2>&1").second ? ""
                                                                        : "docker is not installed";
  return kWhy;
}

std::vector<std::string> Docker::arguments(const std::vector<std::string>& command) {
  std::vector<std::string> words{"--network", "none", "--security-opt", "seccomp=unconfined",
                                 kImage};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Docker::Docker(const std::string& criu_folder, Features features) : containerd_(criu_folder) {
  start_server(features);
  setenv("DOCKER_HOST", ("unix://" + socket()).c_str(), 1);
  constexpr std::chrono::seconds kStartsWithin{60};
  EXPECT_TRUE(
      eventually([&] { return shell("docker info >/dev/null 2>&1").second; }, kStartsWithin))
      << log();
  const std::string rootfs = folder_.folder("rootfs");
  make_rootfs(rootfs);
  const auto [said, good] =
      shell("tar -C '" + rootfs + "' -cf - . | docker import - " + kImage + " 2>&1");
  EXPECT_TRUE(good) << said;
}

void Docker::start_server(Features features) {
  if (features == Features::user_namespaces) {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::others_exec,
                                 std::filesystem::perm_options::add);
  }
  const std::string log = folder_.path() + "/log";
  // A configuration for the test, instead of that of the machine.
  const std::string config =
      folder_.file("daemon.json", features == Features::usual          ? "{}"
                                  : features == Features::experimental ? R"({"experimental": true})"
                                                                       : kWithUserNamespaces);
  const std::string containerd = containerd_.socket();
  const std::string data = folder_.folder("data");
  const std::string exec = folder_.folder("exec");
  const std::string pid_file = folder_.path() + "/pid";
  const std::string host = "unix://" + socket();
  pid_ = fork();
  if (pid_ == 0) {
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    execlp("dockerd", "dockerd", "--config-file", config.c_str(), "--containerd",
           containerd.c_str(), "--data-root", data.c_str(), "--exec-root", exec.c_str(),
           "--pidfile", pid_file.c_str(), "--host", host.c_str(), "--bridge=none",
           "--iptables=false", "--ip6tables=false", nullptr);
    _exit(127);
  }
}

void Docker::start(const std::string& name) const {
  std::string words;
  for (const std::string& word : arguments()) words += " '" + word + "'";
  const std::string said = docker("run --detach --name " + name + words);
  EXPECT_EQ(status(name), "running") << said;
}

void Docker::stop_answering() const {
  EXPECT_TRUE(stop_child(pid_)) << log();
}

void Docker::answer_again() const {
  kill(pid_, SIGCONT);
}

std::string Docker::log() const {
  return shell("cat '" + folder_.path() + "/log'").first;
}

std::string Docker::docker(const std::string& words) const {
  return shell("docker --host 'unix://" + socket() + "' " + words + " 2>&1 </dev/null").first;
}

std::string Docker::value_of(const std::string& name, const std::string& format) const {
  const auto [said, good] =
      shell("docker --host 'unix://" + socket() + "' container inspect --format '" + format + "' " +
            name + " 2>/dev/null </dev/null");
  return good ? said.substr(0, said.find('\n')) : "";
}

std::string Docker::status(const std::string& name) const {
  return value_of(name, "{{.State.Status}}");
}

std::string Docker::root_of(const std::string& name) const {
  const std::string data = folder_.path() + "/data";
  if (value_of(name, "{{.Driver}}") == "vfs") {
    const std::string id = value_of(name, "{{.Id}}");
    return data + "/vfs/dir/" +
           shell("cat '" + data + "/image/vfs/layerdb/mounts/" + id + "/mount-id'").first;
  }
  return value_of(name, "{{.GraphDriver.Data.UpperDir}}");
}

std::string Docker::checkpoints_of(const std::string& name) const {
  return folder_.path() + "/data/containers/" + value_of(name, "{{.Id}}") + "/checkpoints";
}

Docker::~Docker() {
  kill(pid_, SIGCONT);
  static_cast<void>(shell("docker --host 'unix://" + socket() +
                          "' rm --force $(docker --host 'unix://" + socket() +
                          "' ps --all --quiet) >/dev/null 2>&1"));
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  unsetenv("DOCKER_HOST");
  // The data folder of Docker is a mount point.
  static_cast<void>(shell("umount --lazy '" + folder_.path() + "/data' 2>/dev/null"));
}

}  // namespace kymo::test
