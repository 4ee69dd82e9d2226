#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "programs.h"

namespace kymo::test {

// A file system on a loop device, whose disk is as slow as its mount options and limits make it.
class LoopDisk {
 public:
  LoopDisk(const TemporaryDirectory& folder, const std::string& options)
      : path_(folder.folder("disk")), file_(folder.path() + "/disk.img"), options_(options) {
    std::ofstream{file_};
    std::filesystem::resize_file(file_, std::uint64_t{400} << 20U);
    mounted_ = run({"mkfs.ext4", "-q", "-F", file_}).exit_code == 0 && mount();
  }
  ~LoopDisk() {
    if (!cgroup_.empty()) {
      limit(kLimits, 0);
      // A cgroup cannot be removed before all its processes have left it.
      EXPECT_TRUE(eventually([&] {
        std::ifstream members(cgroup_ + "/cgroup.procs");
        for (pid_t pid = 0; members >> pid;) {
          std::ofstream(std::string(kLimits) + "/cgroup.procs") << pid << std::flush;
        }
        return ::rmdir(cgroup_.c_str()) == 0;
      }));
    }
    if (mounted_) unmount();
  }
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  // Limits the data that waits to be written to this disk to one MiB. Returns false if the kernel cannot
  // do that.
  [[nodiscard]] bool bound_dirty_pages() const {
    const std::string settings = "/sys/class/bdi/" + device() + "/";
    const auto set = [&](const char* name, int value) {
      return static_cast<bool>(std::ofstream(settings + name) << value << std::flush);
    };
    return set("strict_limit", 1) && set("max_bytes", 1 << 20);
  }
  // Lets the process, and what it starts, read and write so many bytes a second here. Nothing of what was written is in
  // memory then. Returns false if the kernel cannot do that.
  [[nodiscard]] bool slow_down(pid_t process, std::uint64_t rate) {
    unmount();
    mounted_ = mount();
    std::error_code error;
    const std::string cgroup = std::string(kLimits) + "/kymo-loop-" + std::to_string(::getpid());
    if (!mounted_ || !std::filesystem::exists(std::string(kLimits) + "/tasks", error) ||
        !std::filesystem::create_directory(cgroup, error)) {
      return false;
    }
    cgroup_ = cgroup;
    // The kernel's own threads write, too.
    return limit(cgroup, rate) && limit(kLimits, rate) &&
           static_cast<bool>(std::ofstream(cgroup + "/cgroup.procs") << process << std::flush);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static constexpr char kLimits[] = "/sys/fs/cgroup/blkio";

  [[nodiscard]] bool mount() const {
    return run({"mount", "-o", "loop" + options_, file_, path_}).exit_code == 0;
  }
  void unmount() const {
    EXPECT_TRUE(eventually([&] { return run({"umount", path_}).exit_code == 0; }));
  }
  // Returns false if the kernel cannot do that. `rate`: 0: no limit.
  bool limit(const std::string& cgroup, std::uint64_t rate) const {
    const std::string line = device() + " " + std::to_string(rate);
    bool done = true;
    for (const char* name : {"read_bps_device", "write_bps_device"}) {
      done &= static_cast<bool>(std::ofstream(cgroup + "/blkio.throttle." + name)
                                << line << std::flush);
    }
    return done;
  }
  [[nodiscard]] std::string device() const {
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0) return {};
    return std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  }

  std::string path_;
  std::string file_;
  std::string options_;
  std::string cgroup_;  // empty: there is no limit
  bool mounted_ = false;
};

}  // namespace kymo::test
