#include "support/containers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "support/real_criu.h"
#include "support/shell.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

const char* busybox() {
  return access("/bin/busybox", X_OK) == 0 ? "/bin/busybox" : "/usr/bin/busybox";
}

std::string look(const std::string& program) {
  if (!why_no_criu().empty()) return why_no_criu();
  if (!shell(program + " --version 2>&1").second) return program + " is not installed";
  if (access(busybox(), X_OK) != 0) return "busybox-static is not installed";
  return "";
}

// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

const std::string& why_no_runc() {
  static const std::string kWhy = look("runc");
  return kWhy;
}

const std::string& why_no_podman() {
  static const std::string kWhy = look("podman");
  return kWhy;
}

void make_rootfs(const std::string& folder) {
  for (const char* name : {"bin", "proc", "dev", "sys", "tmp", "etc"}) {
    fs::create_directories(folder + "/" + name);
  }
  fs::copy_file(busybox(), folder + "/bin/busybox");
  for (const char* name : {"sh", "sleep", "cat"}) {
    fs::create_symlink("busybox", folder + "/bin/" + name);
  }
}

std::string counting_loop() {
  // `1<>` neither truncates the file nor lets it grow. A dump may find /count open, and CRIU
  // restores no open file whose size has changed since the dump, as it would in a container that
  // was left running.
  return "i=1000000; while true; do i=$((i+1)); echo $i 1<>/count; sleep 0.1; done";
}

std::vector<std::string> counting_command() {
  return {"/bin/sh", "-c", counting_loop()};
}

std::string make_bundle(const TemporaryDirectory& parent, const std::string& name,
                        const std::vector<std::string>& command) {
  std::string bundle = parent.folder(name);
  make_rootfs(bundle + "/rootfs");
  EXPECT_TRUE(shell("cd '" + bundle + "' && runc spec 2>&1").second);
  nlohmann::json spec = nlohmann::json::parse(text_of(bundle + "/config.json"));
  spec["process"]["terminal"] = false;
  spec["process"]["args"] = command;
  spec["process"].erase("rlimits");
  spec["root"]["readonly"] = false;
  nlohmann::json kept = nlohmann::json::array();
  for (const auto& space : spec["linux"]["namespaces"]) {
    if (space["type"] != "network") kept.push_back(space);
  }
  spec["linux"]["namespaces"] = kept;
  std::ofstream(bundle + "/config.json") << spec.dump(1);
  return bundle;
}

bool RuncFolder::runc(const std::string& words) const {
  return shell("runc --root '" + path_ + "' " + words + " </dev/null >/dev/null 2>&1").second;
}

std::string RuncFolder::start(const std::string& id) const {
  std::string bundle = make_bundle(folder_, id, counting_command());
  EXPECT_TRUE(runc("run -d --bundle '" + bundle + "' " + id));
  EXPECT_TRUE(counts_on(bundle + "/rootfs"));
  return bundle;
}

std::string RuncFolder::status(const std::string& id) const {
  const auto [said, good] = shell("runc --root '" + path_ + "' state " + id + " 2>/dev/null");
  return good ? nlohmann::json::parse(said).value("status", "") : "";
}

RuncFolder::~RuncFolder() {
  std::error_code error;
  for (const auto& container : fs::directory_iterator(path_, error)) {
    const std::string id = container.path().filename();
    EXPECT_TRUE(runc("delete --force " + id))
        << "container " << id << " could not be removed and still runs";
  }
}

std::vector<std::string> PodmanContainers::arguments(const std::string& name,
                                                     const std::vector<std::string>& command) {
  names_.push_back(name);
  make_rootfs(root_of(name));
  std::vector<std::string> words{
      "--network",       "none",     "--security-opt",   "seccomp=unconfined", "--ulimit",
      "nproc=1000:1000", "--ulimit", "nofile=1000:1000", "--rootfs",           root_of(name)};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::string PodmanContainers::podman(const std::string& words) const {
  const std::string folder = fs::path(criu_path()).parent_path();
  return shell("PATH='" + folder + "':$PATH podman " + flags_ + " " + words + " 2>&1 </dev/null")
      .first;
}

std::string PodmanContainers::start(const std::string& name,
                                    const std::vector<std::string>& command) {
  std::string words;
  for (const std::string& word : arguments(name, command)) words += " " + quoted(word);
  // --replace, because a killed test may have left a container of this name.
  const std::string said = podman("run -d --replace --name " + name + words);
  EXPECT_TRUE(counts_on(root_of(name))) << said;
  return root_of(name);
}

std::string PodmanContainers::status(const std::string& name) const {
  const auto [said, good] =
      shell("podman " + flags_ + " container inspect --format '{{.State.Status}}' " + name +
            " 2>/dev/null");
  return good ? said.substr(0, said.find('\n')) : "";
}

PodmanContainers::~PodmanContainers() {
  // Later ones may use what is of earlier ones.
  std::reverse(names_.begin(), names_.end());
  for (const std::string& name : names_) static_cast<void>(podman("rm -f -t 0 " + name));
}

bool counts_on(const std::string& rootfs) {
  const std::string before = text_of(rootfs + "/count");
  return eventually([&] {
    const std::string now = text_of(rootfs + "/count");
    return !now.empty() && now != before;
  });
}

}  // namespace kymo::test
