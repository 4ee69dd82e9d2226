#include "engines.h"

#include <chrono>
#include <filesystem>

#include "checkpoint/runtimes/containerd/containerd_runtime.h"
#include "checkpoint/runtimes/docker/docker_runtime.h"
#include "checkpoint/runtimes/podman/podman_runtime.h"
#include "checkpoint/runtimes/runc/runc_runtime.h"
#include "support/containerd.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/shell.h"

namespace kymo::runtime {
namespace {

constexpr std::chrono::seconds kTimeout{60};

class RuncEngine : public Engine {
 public:
  explicit RuncEngine(std::string criu_folder) : criu_folder_(std::move(criu_folder)) {
    make_runtime();
    dumps_frozen = false;
  }
  void make_runtime() override {
    runtime_ =
        make_runc_runtime({.root = runc_.path(), .criu_folder = criu_folder_, .timeout = kTimeout});
  }
  RunSpec run_spec(const std::string& name, const std::vector<std::string>& /*further*/) override {
    RunSpec spec;
    const std::string bundle = runc_.folder().path() + "/" + name;
    spec.bundle = std::filesystem::exists(bundle)
                      ? bundle
                      : test::make_bundle(runc_.folder(), name, test::counting_command());
    return spec;
  }
  [[nodiscard]] std::string status(const std::string& name) const override {
    return runc_.status(name);
  }
  void kill(const std::string& name) const override {
    EXPECT_TRUE(runc_.runc("kill " + name + " KILL"));
  }
  void unpause(const std::string& name) const override {
    EXPECT_TRUE(runc_.runc("resume " + name));
  }

 private:
  const std::string criu_folder_;
  test::RuncFolder runc_;
};

class PodmanEngine : public Engine {
 public:
  explicit PodmanEngine(std::string criu_folder) : criu_folder_(std::move(criu_folder)) {
    make_runtime();
    dumps_frozen = false;
  }
  void make_runtime() override {
    runtime_ = make_podman_runtime({.flags = {"--cgroup-manager=cgroupfs", "--runtime", "runc"},
                                    .criu_folder = criu_folder_,
                                    .timeout = kTimeout});
  }
  RunSpec run_spec(const std::string& name, const std::vector<std::string>& further) override {
    if (words_.empty()) {
      words_ = podman_.arguments(name);
      static_cast<void>(podman_.podman("rm -f -t 0 " + name));  // of a test that was killed
    }
    RunSpec spec;
    spec.command = further;
    spec.command.insert(spec.command.end(), words_.begin(), words_.end());
    return spec;
  }
  [[nodiscard]] std::string status(const std::string& name) const override {
    return podman_.status(name);
  }
  void kill(const std::string& name) const override {
    static_cast<void>(podman_.podman("kill " + name));
  }
  void unpause(const std::string& name) const override {
    static_cast<void>(podman_.podman("unpause " + name));
  }

 private:
  const std::string criu_folder_;
  test::PodmanContainers podman_;
  std::vector<std::string> words_;
};

class ContainerdEngine : public Engine {
 public:
  explicit ContainerdEngine(const std::string& criu_folder) : server_(criu_folder) {
    make_runtime();
  }
  void make_runtime() override { runtime_ = make_containerd_runtime({.timeout = kTimeout}); }
  RunSpec run_spec(const std::string& /*name*/, const std::vector<std::string>&) override {
    RunSpec spec;
    spec.command = test::counting_command();
    spec.command.insert(spec.command.begin(), test::Containerd::image());
    return spec;
  }
  [[nodiscard]] std::string status(const std::string& name) const override {
    const std::string status = server_.status(name);
    return status == "RUNNING" ? "running" : status == "PAUSED" ? "paused" : status;
  }
  void kill(const std::string& name) const override {
    static_cast<void>(server_.ctr("tasks kill -s SIGKILL " + name));
  }
  void unpause(const std::string& name) const override {
    EXPECT_EQ(server_.ctr("tasks resume " + name), "");
  }
  void start_again(const std::string& name) const override {
    EXPECT_EQ(server_.ctr("tasks start -d " + name), "");
  }
  void stop_answering() const override { server_.stop_answering(); }
  void answer_again() const override { server_.answer_again(); }
  [[nodiscard]] std::string socket() const override { return server_.socket(); }
  [[nodiscard]] std::string variable() const override { return "CONTAINERD_ADDRESS"; }
  [[nodiscard]] std::string restore_call(const RestoreSpec& spec) const override {
    return spec.images_dir;
  }

 private:
  test::Containerd server_;
};

class DockerEngine : public Engine {
 public:
  explicit DockerEngine(const std::string& criu_folder) : server_(criu_folder) {
    make_runtime();
    keeps_statistics = false;
  }
  void make_runtime() override { runtime_ = make_docker_runtime({.timeout = kTimeout}); }
  RunSpec run_spec(const std::string& /*name*/, const std::vector<std::string>& further) override {
    RunSpec spec;
    spec.command = further;
    for (const std::string& word : test::Docker::arguments()) spec.command.push_back(word);
    return spec;
  }
  [[nodiscard]] std::string status(const std::string& name) const override {
    return server_.status(name);
  }
  void kill(const std::string& name) const override {
    static_cast<void>(server_.docker("kill " + name));
  }
  void unpause(const std::string& name) const override {
    EXPECT_EQ(server_.docker("unpause " + name), name + "\n");
  }
  void start_again(const std::string& name) const override {
    EXPECT_EQ(server_.docker("start " + name), name + "\n");
  }
  void stop_answering() const override { server_.stop_answering(); }
  void answer_again() const override { server_.answer_again(); }
  [[nodiscard]] std::string socket() const override { return server_.socket(); }
  [[nodiscard]] std::string variable() const override { return "DOCKER_HOST"; }
  [[nodiscard]] std::string scheme() const override { return "unix://"; }
  [[nodiscard]] std::string restore_call(const RestoreSpec& /*spec*/) const override {
    return "/start?checkpoint=";
  }

 private:
  test::Docker server_;
};

}  // namespace

std::string why_no_engine(std::string_view name) {
  return name == "runc"         ? test::why_no_runc()
         : name == "podman"     ? test::why_no_podman()
         : name == "containerd" ? test::why_no_containerd()
                                : test::why_no_docker();
}

std::unique_ptr<Engine> make_engine(std::string_view name, const test::BreakableCriu& criu) {
  if (name == "runc") return std::make_unique<RuncEngine>(criu.folder());
  if (name == "podman") return std::make_unique<PodmanEngine>(criu.folder());
  if (name == "containerd") return std::make_unique<ContainerdEngine>(criu.folder());
  return std::make_unique<DockerEngine>(criu.folder());
}

}  // namespace kymo::runtime
