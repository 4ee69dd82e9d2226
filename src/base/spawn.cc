#include "base/spawn.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/file_limit.h"
#include "base/own_thread.h"
#include "base/pipe.h"
#include "base/reap.h"

namespace kymo {
namespace {

constexpr int kNotBegun = 127;

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));  // execve() does not change the words
  }
  pointers.push_back(nullptr);
  return pointers;
}

// The paths at which the file may be, in the order in which they are tried.
std::vector<std::string> paths_of(const std::string& file) {
  if (file.find('/') != std::string::npos) return {file};
  const char* const ours = std::getenv("PATH");
  const std::string path = ours != nullptr ? ours : "/bin:/usr/bin";
  std::vector<std::string> paths;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    paths.push_back((end == begin ? "." : path.substr(begin, end - begin)) + "/" + file);
    begin = end + 1;
  }
  return paths;
}

// What a child needs to become the program. All of it is made before, because the child must not
// allocate.
struct Image {
  const Program& program;
  std::vector<std::string> paths = paths_of(program.file);
  std::vector<int> sources;  // of the descriptors
  std::vector<char*> words = pointers_to(program.words);
  std::vector<char*> environment{};  // empty: that of this program
  sigset_t blocked{};
  int failure = -1;  // a pipe: the child writes errno to it if the program cannot be run
};

bool places_descriptors(const std::vector<int>& sources) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const int place = static_cast<int>(i);
    if (sources[i] == kDevNull) {
      const int access = place == STDIN_FILENO ? O_RDONLY : O_WRONLY;
      const int opened = ::open("/dev/null", access);
      if (opened < 0) return false;
      if (opened == place) continue;
      if (::dup2(opened, place) < 0) return false;
      ::close(opened);
    } else if (sources[i] == place) {
      if (::fcntl(place, F_SETFD, 0) != 0) return false;
    } else if (::dup2(sources[i], place) < 0) {
      return false;
    }
  }
  return true;
}

// Puts the pipe behind the places of the descriptors, and closes all others. Does nothing if all
// are kept.
bool closes_others(const std::vector<int>& sources, int& failure) {
  if (sources.empty()) return true;
  const int place = static_cast<int>(sources.size());
  if (failure != place) {
    if (::dup3(failure, place, O_CLOEXEC) < 0) return false;
    failure = place;
  }
  return ::close_range(static_cast<unsigned>(place) + 1, ~0U, 0) == 0;
}

// If it may not have this priority, it begins with the usual one.
void set_autogroup_nice(const std::string& nice) {
  if (nice.empty()) return;
  const int file = ::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  static_cast<void>(!::write(file, nice.data(), nice.size()));
  ::close(file);
}

// Runs in the child, which has the memory of this program, and its own descriptors, signals and
// limits. Returns errno if the program cannot be run.
int execute(const Image& image, int& failure) {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &by_default, nullptr);
  if (image.program.leads == Program::Leads::group && ::setpgid(0, 0) != 0) return errno;
  if (image.program.leads == Program::Leads::session && ::setsid() < 0) return errno;
  set_autogroup_nice(image.program.autogroup_nice);
  if (!places_descriptors(image.sources) || !closes_others(image.sources, failure)) return errno;
  const std::string& directory = image.program.directory;
  if (!directory.empty() && ::chdir(directory.c_str()) != 0) return errno;
  if (!image.program.keeps_file_limit) give_back_file_limit();
  ::sigprocmask(SIG_SETMASK, &image.blocked, nullptr);
  int error = ENOENT;
  for (const std::string& path : image.paths) {
    ::execve(path.c_str(), image.words.data(),
             image.environment.empty() ? environ : image.environment.data());
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  return error;
}

// Starts the child. It is a function of its own, because the child runs on the stack of this thread
// while the thread waits in vfork(2). fork(2) would copy the page tables of this program.
[[gnu::noinline]] pid_t start(const Image& image) {
  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid != 0) return pid;
  int failure = image.failure;
  const int error = execute(image, failure);
  static_cast<void>(!::write(failure, &error, sizeof error));
  ::_exit(kNotBegun);
}

// What the child has written: errno, or 0 if the program runs, because exec closes the pipe.
int failure_in(const FileDescriptor& pipe) {
  int error = 0;
  ssize_t got = 0;
  while ((got = ::read(pipe.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  return got == sizeof error ? error : 0;
}

}  // namespace

// A thread that never ends. It starts one program after the other.
class LastingStarter::Worker {
 public:
  // One that nobody uses. There are as many as were used at the same time. Null if there can be no thread.
  static Worker* take() {
    Idle& all = idle();
    {
      const std::lock_guard lock(all.mutex);
      if (!all.workers.empty()) {
        Worker* const worker = all.workers.back();
        all.workers.pop_back();
        return worker;
      }
    }
    try {
      return new Worker;
    } catch (const std::runtime_error&) {
      return nullptr;
    }
  }
  static void give_back(Worker* worker) {
    Idle& all = idle();
    const std::lock_guard lock(all.mutex);
    all.workers.push_back(worker);
  }

  // As kymo::start(). Sets errno.
  pid_t start(const Image& image) {
    std::unique_lock lock(mutex_);
    order_ = &image;
    changed_.notify_all();
    changed_.wait(lock, [this] { return order_ == nullptr; });
    errno = error_;
    return pid_;
  }

  [[nodiscard]] pid_t id() const { return id_; }

 private:
  struct Idle {
    std::mutex mutex;
    std::vector<Worker*> workers;
  };

  static Idle& idle() {
    static auto* const kOnly = new Idle;  // never destroyed: threads may outlive main()
    return *kOnly;
  }

  Worker() {
    // A new thread inherits the mask. No signal handler may run where programs are started.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const Result<void> begun = on_own_thread([this] { work(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!begun) throw std::runtime_error(begun.error().message);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return id_ != 0; });
  }

  [[noreturn]] void work() {
    std::unique_lock lock(mutex_);
    id_ = ::gettid();
    changed_.notify_all();
    for (;;) {
      changed_.wait(lock, [this] { return order_ != nullptr; });
      pid_ = kymo::start(*order_);
      error_ = pid_ < 0 ? errno : 0;
      order_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  const Image* order_ = nullptr;
  pid_t id_ = 0;  // set before the constructor returns
  pid_t pid_ = -1;
  int error_ = 0;
};

namespace {

thread_local LastingStarter* current_starter = nullptr;

}  // namespace

LastingStarter::LastingStarter()
    : outer_(std::exchange(current_starter, this)),
      worker_(outer_ != nullptr ? outer_->worker_ : Worker::take()) {}

LastingStarter::~LastingStarter() {
  current_starter = outer_;
  if (outer_ == nullptr && worker_ != nullptr) Worker::give_back(worker_);
}

pid_t LastingStarter::thread() const {
  return worker_ != nullptr ? worker_->id() : ::gettid();
}

pid_t LastingStarter::start(const void* image) const {
  const Image& program = *static_cast<const Image*>(image);
  return worker_ != nullptr ? worker_->start(program) : kymo::start(program);
}

Result<pid_t> spawn(const Program& program) {
  std::optional<LastingStarter> lasting;
  if (program.parent_lasts) lasting.emplace();
  // The descriptors are put in their places one after the other. If one would be overwritten before
  // its turn, a copy above all places is used.
  Image image{.program = program, .sources = program.descriptors};
  std::vector<int>& sources = image.sources;
  std::vector<FileDescriptor> copies;
  const auto places = static_cast<int>(sources.size());
  for (int place = 0; place < places; ++place) {
    int& source = sources[static_cast<std::size_t>(place)];
    if (source == kDevNull || source == place || source >= places) continue;
    source = ::fcntl(source, F_DUPFD_CLOEXEC, places);
    if (source < 0) return system_error("cannot run " + program.file, errno);
    copies.emplace_back(source);
  }
  Result<Pipe> failure = make_pipe();
  if (!failure) return system_error("cannot run " + program.file, failure.error().errno_value);
  // Not below the places, where it would be overwritten.
  FileDescriptor told(::fcntl(failure->to.get(), F_DUPFD_CLOEXEC, places));
  if (!told.valid()) return system_error("cannot run " + program.file, errno);
  failure->to.reset();
  image.failure = told.get();
  if (program.environment) image.environment = pointers_to(*program.environment);
  sigemptyset(&image.blocked);
  for (const int signal : program.blocked) sigaddset(&image.blocked, signal);
  // No signal handler may run in the child, which has the memory of this program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = lasting ? lasting->start(&image) : start(image);
  const int no_child = pid < 0 ? errno : 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  told.reset();
  if (no_child != 0) return system_error("cannot run " + program.file, no_child);
  if (const int error = failure_in(failure->from); error != 0) {
    reap(pid);
    return system_error("cannot run " + program.file, error);
  }
  if (spawn_listener != nullptr) spawn_listener->spawned(pid);
  return pid;
}

}  // namespace kymo
