#include "daemon/stored/job_output.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "lens/report/human.h"

namespace kymo::daemon {
namespace {

constexpr std::uint64_t kStatBlock = 512;  // the unit of st_blocks on every file system

// Where the first whole line after `place` begins. Returns `place` if no line ends in the next
// 16384 bytes.
std::uint64_t line_at(int fd, std::uint64_t place) {
  std::string piece(16384, '\0');
  const ssize_t got = pread(fd, piece.data(), piece.size(), static_cast<off_t>(place));
  const std::size_t feed = piece.substr(0, got > 0 ? static_cast<std::size_t>(got) : 0).find('\n');
  return feed == std::string::npos ? place : place + feed + 1;
}

}  // namespace

Result<std::uint64_t> bound_output(const std::string& path, std::uint64_t most) {
  const Result<FileDescriptor> file = open_regular(path, O_RDWR | O_NOFOLLOW);
  if (!file && file.error().errno_value == ENOENT) return std::uint64_t{0};
  if (!file) {
    return Error{file.error().code, "limit the job's output: " + file.error().message,
                 file.error().errno_value};
  }
  struct stat info {};
  if (fstat(file->get(), &info) != 0) return system_error("limit the job's output " + path, errno);
  const std::uint64_t stored = static_cast<std::uint64_t>(info.st_blocks) * kStatBlock;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const std::uint64_t kept = most - most / 4;
  if (stored <= most || size <= kept) return std::uint64_t{0};
  const std::uint64_t end = line_at(file->get(), size - kept);
  if (fallocate(file->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>(end)) != 0 &&
      (errno != EOPNOTSUPP || ftruncate(file->get(), 0) != 0)) {
    return system_error("limit the job's output " + path, errno);
  }
  if (fstat(file->get(), &info) != 0) return system_error("look at " + path, errno);
  const std::uint64_t left = static_cast<std::uint64_t>(info.st_blocks) * kStatBlock;
  return stored > left ? stored - left : std::uint64_t{0};
}

std::vector<std::string> outputs_of_released(const std::string& state_dir,
                                             const std::vector<store::Job>& jobs) {
  std::set<std::string> known;
  for (const store::Job& job : jobs) known.insert(job.id);
  std::vector<std::string> outputs;
  std::error_code error;
  for (std::filesystem::directory_iterator folder(state_dir + "/jobs", error), end;
       !error && folder != end; folder.increment(error)) {
    if (known.contains(folder->path().filename())) continue;
    for (const char* name : {"/stdout", "/stderr"})
      outputs.push_back(folder->path().string() + name);
  }
  return outputs;
}

void bound_job_outputs(const Parts& parts) {
  const std::uint64_t most = parts.config.job_output_bytes;
  if (most == 0) return;
  const auto bound = [most](const std::string& owner, const std::string& path) {
    const Result<std::uint64_t> freed = bound_output(path, most);
    if (!freed) {
      spdlog::warn("{}", freed.error().message);
    } else if (*freed != 0) {
      spdlog::info("{}: removed the oldest {} of {}", owner, report::bytes(*freed), path);
    }
  };
  const std::vector<store::Job> jobs = parts.store.jobs();
  for (const store::Job& job : jobs) {
    if (job.state != store::JobState::running || job.stdout_path.empty()) continue;
    for (const std::string& path : {job.stdout_path, job.stderr_path})
      bound("job " + job.name, path);
  }
  for (const std::string& path : outputs_of_released(parts.config.state_dir, jobs)) {
    bound("a released job", path);
  }
}

}  // namespace kymo::daemon
