#include "counting.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/proc/process.h"
#include "programs.h"
#include "support/containers.h"
#include "support/docker.h"
#include "support/echo_server.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

namespace fs = std::filesystem;

// A plain process. It uses nothing in the state directory.
constexpr char kProgram[] =
    R"(exit 1 if -e "$ARGV[0].begun"; open my $b, ">", "$ARGV[0].begun"; close $b;
  if ($ARGV[1]) { open $g, ">", "$ARGV[0].gone"; print $g "x"; unlink "$ARGV[0].gone"; }
  open STDOUT, ">/dev/null"; open STDERR, ">/dev/null"; for ($i = 1000000;; ++$i) {
  open my $to, "+<", $ARGV[0] or open $to, ">", $ARGV[0]; print $to "$i\n"; close $to; select undef, undef, undef, 0.1 })";

class CountingProcess : public Counting {
 public:
  CountingProcess() : Counting("kymo-web") {}
  std::vector<std::string> flags() const override { return {}; }
  std::vector<std::string> run() override {
    return {"run",  "process", "--name", name(), "--",
            "perl", "-e",      kProgram, file(), with_deleted_file() ? "1" : "0"};
  }

 private:
  std::string file() const override { return folder_.path() + "/count"; }
};

constexpr char kConnectedProgram[] =
    R"(exit 1 if -e "$ARGV[0].begun"; open my $b, ">", "$ARGV[0].begun"; close $b;
  open STDOUT, ">/dev/null"; open STDERR, ">/dev/null"; use Socket; $SIG{PIPE} = "IGNORE"; my $s; my $i = 1000000;
  while (1) {
    unless ($s) { socket $s, PF_INET, SOCK_STREAM, 0; connect $s, sockaddr_in($ARGV[1], INADDR_LOOPBACK) or die }
    my $got; $got = <$s> if syswrite $s, "$i\n"; if (!$got) { close $s; undef $s; next }
    die if $got != $i++; open my $to, "+<", $ARGV[0] or open $to, ">", $ARGV[0]; print $to $got; close $to;
    select undef, undef, undef, 0.1 })";

class CountingOverAConnection : public Counting {
 public:
  CountingOverAConnection() : Counting("kymo-web") {}
  std::vector<std::string> flags() const override { return {}; }
  std::vector<std::string> run() override {
    return {"run",  "process", "--name",          name(), "--",
            "perl", "-e",      kConnectedProgram, file(), std::to_string(server_.port())};
  }
  int connections() const override { return server_.connections(); }

 private:
  std::string file() const override { return folder_.path() + "/count"; }

  EchoServer server_;
};

class CountingRunc : public Counting {
 public:
  CountingRunc() : Counting("kymo-web") {}
  ~CountingRunc() override { forget(); }
  std::vector<std::string> flags() const override { return {"--runc-root", runc_.path()}; }
  std::vector<std::string> run() override {
    const std::string bundle = make_bundle(runc_.folder(), name(), command());
    return {"run", "runc", "--bundle", bundle, "--id", name()};
  }
  void forget() override { runc_.runc("delete --force " + name()); }

 private:
  std::string root() const override { return runc_.folder().path() + "/" + name() + "/rootfs"; }

  RuncFolder runc_;
};

class CountingPodman : public Counting {
 public:
  CountingPodman() : Counting("kymo-e2e") {}
  std::vector<std::string> flags() const override {
    return {"--podman-flags=" + PodmanContainers::flags()};
  }
  std::vector<std::string> run() override {
    static_cast<void>(podman_.podman("rm -f -t 0 " + name()));  // of a test that was killed
    std::vector<std::string> words{"run", "podman", "--name", name(), "--"};
    for (const std::string& word : podman_.arguments(name(), command())) words.push_back(word);
    return words;
  }

 private:
  std::string root() const override { return podman_.root_of(name()); }

  PodmanContainers podman_;
};

class CountingContainerd : public Counting {
 public:
  explicit CountingContainerd(const BreakableCriu& criu)
      : Counting("kymo-web"), containerd_(fs::path(criu.path()).parent_path()) {}
  std::vector<std::string> flags() const override { return {}; }
  std::vector<std::string> run() override {
    std::vector<std::string> words{"run",  "containerd", "--name",
                                   name(), "--",         Containerd::image()};
    for (const std::string& word : command()) words.push_back(word);
    return words;
  }

 private:
  Containerd containerd_;
};

class CountingDocker : public Counting {
 public:
  explicit CountingDocker(const BreakableCriu& criu)
      : Counting("kymo-web"), docker_(fs::path(criu.path()).parent_path()) {}
  std::vector<std::string> flags() const override { return {}; }
  std::vector<std::string> run() override {
    std::vector<std::string> words{"run", "docker", "--name", name(), "--"};
    for (const std::string& word : Docker::arguments(command())) words.push_back(word);
    return words;
  }

 private:
  Docker docker_;
};

std::unique_ptr<Counting> make_counting(Kind kind, const BreakableCriu& criu) {
  switch (kind) {
    case Kind::process:
      return std::make_unique<CountingProcess>();
    case Kind::connected:
      return std::make_unique<CountingOverAConnection>();
    case Kind::runc:
      return std::make_unique<CountingRunc>();
    case Kind::podman:
      return std::make_unique<CountingPodman>();
    case Kind::containerd:
      return std::make_unique<CountingContainerd>(criu);
    case Kind::docker:
      return std::make_unique<CountingDocker>(criu);
  }
  std::abort();
}

}  // namespace

const std::string& why_not(Kind kind) {
  switch (kind) {
    case Kind::process:
    case Kind::connected:
      return why_no_criu();
    case Kind::runc:
      return why_no_runc();
    case Kind::podman:
      return why_no_podman();
    case Kind::containerd:
      return why_no_containerd();
    case Kind::docker:
      return why_no_docker();
  }
  std::abort();
}

std::unique_ptr<Counting> Counting::make(Kind kind, const BreakableCriu& criu,
                                         bool with_deleted_file) {
  std::unique_ptr<Counting> made = make_counting(kind, criu);
  made->with_deleted_file_ = with_deleted_file;
  return made;
}

Counting::~Counting() = default;

// The last word is the folder of this test, so that all copies of the process can be found.
std::vector<std::string> Counting::command() const {
  const std::string file = with_deleted_file() ? "exec 9>/gone; rm /gone; " : "";
  return {"/bin/sh", "-c", "[ ! -e /begun ] || exit 1; : >/begun; " + file + counting_loop(),
          folder_.path()};
}

// Leaves out the children of a shell that have not yet become `sleep`, and zombies.
std::vector<pid_t> Counting::copies() const {
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const Result<std::string> words = kymo::read_file(entry->path() / "cmdline");
    if (!words) continue;  // the process has ended meanwhile
    const bool counts = words->starts_with("/bin/sh") || words->starts_with("perl");
    if (counts && words->find(folder_.path()) != std::string::npos) {
      found.push_back(std::stoi(entry->path().filename()));
    }
  }
  const std::vector<pid_t> all = found;
  std::erase_if(found, [&](pid_t one) {
    const Result<probe::Process> seen = probe::read_process(one);
    return !seen || seen->zombie() || std::find(all.begin(), all.end(), seen->parent) != all.end();
  });
  return found;
}

bool Counting::has_ghost() const {
  const fs::directory_iterator all(root());
  return std::any_of(begin(all), fs::end(all), [](const fs::directory_entry& file) {
    return file.path().extension() == ".ghost";
  });
}

std::uint64_t Counting::number() const {
  const std::vector<pid_t> all = copies();
  if (all.size() != 1) return 0;
  const std::string text = read_file("/proc/" + std::to_string(all[0]) + "/root" + file());
  return std::strtoull(text.c_str(), nullptr, 10);
}

bool Counting::counts() const {
  std::uint64_t before = 0;  // the first number that was read from the only copy
  bool counted = false;
  eventually([&] {
    const std::uint64_t now = number();
    counted = before != 0 && now > before;
    if (before == 0) before = now;
    return counted || copies().empty();
  });
  return counted;
}

}  // namespace kymo::test
