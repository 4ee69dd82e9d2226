#include "support/containerd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/sanitizers.h"
#include "support/containers.h"
#include "support/shell.h"
#include "support/stop_child.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Copies a file into an OCI image layout, under its digest, and returns its descriptor
// (github.com/opencontainers/image-spec, descriptor.md and image-layout.md).
json add_blob(const std::string& layout, const std::string& file, const std::string& type) {
  const std::string sum = shell("sha256sum '" + file + "'").first.substr(0, 64);
  const auto size = fs::file_size(file);
  fs::rename(file, layout + "/blobs/sha256/" + sum);
  return {{"mediaType", type}, {"digest", "sha256:" + sum}, {"size", size}};
}

std::string write_json(const std::string& path, const json& what) {
  std::ofstream(path) << what.dump();
  return path;
}

}  // namespace

const std::string& why_no_containerd() {
#if KYMO_THREAD_SANITIZER
  static const std::string kWhy = "Debian builds gRPC without ThreadSanitizer";
#else
  static const std::string kWhy = !why_no_runc().empty() ? why_no_runc()
                                  : shell("containerd --version 2>&1").second
                                      ? ""
                                      : "containerd is not installed";
#endif
  return kWhy;
}

Containerd::Containerd(const std::string& criu_folder) : criu_folder_(criu_folder) {
  folder_.folder("tmp");
  start();
  import_image();
}

void Containerd::start() {
  const std::string config = folder_.path() + "/config.toml";
  std::ofstream(config) << "version = 2\nroot = '" << folder_.path() << "/root'\nstate = '"
                        << folder_.path() << "/state'\n"
                        << "disabled_plugins = ['io.containerd.grpc.v1.cri']\n[grpc]\naddress = '"
                        << socket() << "'\n";
  const std::string log = folder_.path() + "/log";
  const std::string temporary = this->temporary();
  pid_ = fork();
  if (pid_ == 0) {
    const std::string path = criu_folder_ + ":" + getenv("PATH");
    setenv("PATH", path.c_str(), 1);
    setenv("TMPDIR", temporary.c_str(), 1);
    unsetenv("XDG_RUNTIME_DIR");  // containerd would use its folder instead
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    execlp("containerd", "containerd", "--config", config.c_str(), nullptr);
    _exit(127);
  }
  setenv("CONTAINERD_ADDRESS", socket().c_str(), 1);
  EXPECT_TRUE(eventually([&] { return shell("ctr version >/dev/null 2>&1").second; }))
      << this->log();
}

bool Containerd::uploads() const {
  return shell("find '" + folder_.path() +
               "/root/io.containerd.content.v1.content/ingest' -name data -size +0 2>/dev/null | "
               "grep -q .")
      .second;
}

void Containerd::restart() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  start();
}

void Containerd::import_image() {
  const std::string layout = folder_.folder("layout");
  const std::string scratch = folder_.folder("scratch");
  fs::create_directories(layout + "/blobs/sha256");
  make_rootfs(scratch + "/rootfs");
  EXPECT_TRUE(shell("tar -C '" + scratch + "/rootfs' -cf '" + scratch + "/layer.tar' .").second);
  const json layer =
      add_blob(layout, scratch + "/layer.tar", "application/vnd.oci.image.layer.v1.tar");
  const json config{{"architecture", "amd64"},
                    {"os", "linux"},
                    {"config", {{"Env", {"PATH=/bin"}}, {"Cmd", {"/bin/sh"}}}},
                    {"rootfs", {{"type", "layers"}, {"diff_ids", {layer["digest"]}}}}};
  const json manifest{{"schemaVersion", 2},
                      {"config", add_blob(layout, write_json(scratch + "/config", config),
                                          "application/vnd.oci.image.config.v1+json")},
                      {"layers", {layer}}};
  json listed = add_blob(layout, write_json(scratch + "/manifest", manifest),
                         "application/vnd.oci.image.manifest.v1+json");
  listed["annotations"] = {{"io.containerd.image.name", image()}};
  write_json(layout + "/index.json", {{"schemaVersion", 2}, {"manifests", {listed}}});
  write_json(layout + "/oci-layout", {{"imageLayoutVersion", "1.0.0"}});
  EXPECT_TRUE(shell("tar -C '" + layout + "' -cf '" + scratch + "/image.tar' .").second);
  const std::string said = ctr("images import '" + scratch + "/image.tar'");
  EXPECT_NE(ctr("images list -q").find(image()), std::string::npos) << said;
}

void Containerd::stop_answering() const {
  EXPECT_TRUE(stop_child(pid_)) << log();
}

void Containerd::answer_again() const {
  kill(pid_, SIGCONT);
}

std::string Containerd::log() const {
  return shell("cat '" + folder_.path() + "/log'").first;
}

std::string Containerd::ctr(const std::string& words) const {
  return shell("ctr --address '" + socket() + "' " + words + " 2>&1 </dev/null").first;
}

std::string Containerd::status(const std::string& id) const {
  std::istringstream lines(ctr("tasks list"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::string pid;
    std::string status;
    if (words >> name >> pid >> status && name == id) return status;
  }
  return "";
}

Containerd::~Containerd() {
  std::istringstream names(ctr("containers list -q"));
  for (std::string name; std::getline(names, name);) {
    static_cast<void>(ctr("tasks delete --force " + name));
    static_cast<void>(ctr("containers delete " + name));
  }
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  unsetenv("CONTAINERD_ADDRESS");
}

}  // namespace kymo::test
