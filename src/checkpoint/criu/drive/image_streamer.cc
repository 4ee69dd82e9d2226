#include "checkpoint/criu/drive/image_streamer.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/busy_paths.h"
#include "base/clock.h"
#include "base/patience.h"
#include "base/proc/proc_file.h"
#include "checkpoint/criu/drive/streamer_requests.h"

namespace kymo::criu {
namespace {

constexpr const char* kCaptureSocket = "streamer-capture.sock";
constexpr const char* kServeSocket = "streamer-serve.sock";
// The most images that are transferred at the same time. CRIU has some dozens open.
constexpr std::size_t kMaxFiles = 4096;

// The directories into which streamers write.
BusyPaths& written() {
  static auto* const kAll = new BusyPaths;
  return *kAll;
}

Error stream_error(const char* what, int cause) {
  return system_error("image stream: " + std::string(what), cause);
}

// Receives one byte and the descriptor that comes with it. Returns nothing if it is not there yet.
Result<std::optional<FileDescriptor>> receive_descriptor(int socket) {
  char byte = 0;
  iovec buffer{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &buffer;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<FileDescriptor>();
  if (n < 0) return stream_error("receive a pipe", errno);
  const cmsghdr* header = n == 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
    return Error{Code::data_loss, "image stream: CRIU did not send the expected pipe"};
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return std::optional<FileDescriptor>(FileDescriptor(fd));
}

// Notes how long the thread has run or was ready to run; 0 if the kernel does not say it.
void take_work(pid_t thread, Streamed& totals) {
  probe::ProcFile::Buffer buffer;
  const probe::ProcFile file("/proc/self/task/" + std::to_string(thread) + "/schedstat");
  std::string_view times = file.read(buffer);
  const std::uint64_t ran_ns = probe::take_number(times);
  totals.starved_ns = probe::take_number(times);
  totals.work_ns = ran_ns + totals.starved_ns;
}

}  // namespace

struct ImageStreamer::State {
  bool capturing = true;
  Encoding encoding;
  Moved moved;
  std::shared_ptr<HeldImages> held;  // of a dump; may be null
  FileDescriptor dir;
  FileDescriptor socket_dir;
  FileDescriptor listener;
  FileDescriptor wake;
  std::string socket_name;
  std::thread thread;

  // Only the thread uses these until it is joined.
  FileDescriptor connection;
  StreamerRequests requests;
  std::string awaited;                // the image whose pipe comes next; empty: none
  std::optional<StoredImage> stored;  // of a restore: the file of that image
  std::vector<std::unique_ptr<StreamedFile>> files;
  Streamed totals;

  std::mutex mutex;
  std::condition_variable answered;
  std::optional<Error> error;  // the first one
  bool settling = false;
  bool ending = false;
  bool ended = false;
  bool abandoned = false;             // do not call `moved` any more
  pid_t tid = 0;                      // of the thread
  Streamed seen;                      // `totals` when the thread last began to wait for CRIU
  std::uint64_t moving_since_ns = 0;  // 0: the thread waits for CRIU

  void run();
  bool one_round();
  void look_at_socket();
  Result<void> read_socket();
  Result<void> requested(const std::string& name);
  Result<void> add_file(FileDescriptor pipe);
  void pump(const std::vector<pollfd>& ready);
  bool has_nothing_to_read();
  void flush_all();
  void begin_moving();
  void end_moving();
  void report_progress();
  void fail(const Error& why);
};

void ImageStreamer::State::fail(const Error& why) {
  {
    const std::lock_guard lock(mutex);
    if (!error) error = why;
  }
  answered.notify_all();
}

// Handles the request for a file. In a restore, it first answers whether there is such a file.
Result<void> ImageStreamer::State::requested(const std::string& name) {
  awaited = name;
  if (capturing) return {};
  Result<StoredImage> image = open_stored(dir.get(), name);
  const std::string reply = streamer_reply(image.ok());
  if (send(connection.get(), reply.data(), reply.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(reply.size())) {
    return stream_error("answer CRIU", errno);
  }
  if (image) {
    stored = std::move(image).value();
  } else {
    awaited.clear();
  }
  return {};
}

Result<void> ImageStreamer::State::add_file(FileDescriptor pipe) {
  if (files.size() >= kMaxFiles) {
    return Error{Code::resource_exhausted,
                 "image stream: CRIU has more images open than a dump needs"};
  }
  Result<std::unique_ptr<StreamedFile>> file =
      capturing ? capture_file(awaited, std::move(pipe), dir.get(), encoding, held.get())
                : serve_file(awaited, std::move(pipe), std::move(*stored));
  awaited.clear();
  stored.reset();
  if (!file) return file.error();
  files.push_back(std::move(file).value());
  return {};
}

// Reads the requests that have arrived, one by one. The caller closes the connection on an error.
Result<void> ImageStreamer::State::read_socket() {
  for (;;) {
    if (!awaited.empty()) {
      Result<std::optional<FileDescriptor>> pipe = receive_descriptor(connection.get());
      if (!pipe) return pipe.error();
      if (!*pipe) return {};
      if (Result<void> added = add_file(std::move(**pipe)); !added) return added;
      continue;
    }
    std::array<std::byte, kMaxStreamerRequest> buffer;
    const ssize_t n = recv(connection.get(), buffer.data(), requests.wanted(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (n < 0 && errno != ECONNRESET) return stream_error("read from CRIU", errno);
    if (n <= 0) {
      connection.reset();  // CRIU has no more requests
      if (requests.between()) return {};
      return Error{Code::data_loss, "image stream: it ended in the middle of a request"};
    }
    const auto name = requests.take(std::span(buffer).first(static_cast<std::size_t>(n)));
    if (!name) return name.error();
    if (!*name) continue;
    if (Result<void> ok = requested(**name); !ok) return ok;
  }
}

void ImageStreamer::State::look_at_socket() {
  if (!connection.valid()) {
    if (!listener.valid()) return;
    connection =
        FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) return;
    listener.reset();  // only one CRIU connects
  }
  if (Result<void> ok = read_socket(); !ok) {
    fail(ok.error());
    connection.reset();
  }
}

void ImageStreamer::State::pump(const std::vector<pollfd>& ready) {
  constexpr std::size_t kBeforeFiles = 2;
  bool any = false;
  begin_moving();
  for (std::size_t i = 0; i + kBeforeFiles < ready.size(); ++i) {
    if (ready[i + kBeforeFiles].revents == 0) continue;
    any = true;
    const Result<bool> done = files[i]->pump(totals);
    if (!done) fail(done.error());
    if (!done || *done) files[i].reset();  // closes the pipe, and CRIU notices
  }
  std::erase(files, nullptr);
  end_moving();
  if (any) report_progress();
}

// Whether there is nothing to read at this moment: no request, no connection, no data in a pipe.
bool ImageStreamer::State::has_nothing_to_read() {
  std::vector<pollfd> fds{{connection.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
  for (const auto& file : files) fds.push_back({file->pipe(), POLLIN, 0});
  return poll(fds.data(), fds.size(), 0) <= 0;
}

void ImageStreamer::State::flush_all() {
  begin_moving();
  for (const auto& file : files) {
    if (Result<void> ok = file->flush(totals); !ok) fail(ok.error());
  }
  end_moving();
  report_progress();
}

void ImageStreamer::State::begin_moving() {
  const std::lock_guard lock(mutex);
  moving_since_ns = monotonic_ns();
}

void ImageStreamer::State::end_moving() {
  const std::lock_guard lock(mutex);
  totals.busy_ns += monotonic_ns() - std::exchange(moving_since_ns, 0);
  seen = totals;
}

void ImageStreamer::State::report_progress() {
  const std::lock_guard lock(mutex);
  if (moved && !abandoned) moved(totals);
}

bool ImageStreamer::State::one_round() {
  const auto way = static_cast<short>(capturing ? POLLIN : POLLOUT);
  const int socket = connection.valid() ? connection.get() : listener.get();
  std::vector<pollfd> fds{{wake.get(), POLLIN, 0}, {socket, POLLIN, 0}};
  for (const auto& file : files) fds.push_back({file->pipe(), way, 0});
  if (poll(fds.data(), fds.size(), -1) < 0) return errno == EINTR;
  if (fds[1].revents != 0) look_at_socket();
  // Files that were added just now have their turn in the next round.
  pump(fds);
  bool checking = false;
  {
    const std::lock_guard lock(mutex);
    if (!settling && !ending) return true;
    if (ending && (!capturing || error)) return false;
    checking = settling && held != nullptr && !error;
  }
  if (!has_nothing_to_read()) return true;
  flush_all();
  if (checking) {
    if (Result<void> good = held->check_before_end(); !good) fail(good.error());
  }
  const std::lock_guard lock(mutex);
  std::uint64_t woken = 0;
  if (ending) return false;
  settling = false;
  static_cast<void>(read(wake.get(), &woken, sizeof woken));
  answered.notify_all();
  return true;
}

void ImageStreamer::State::run() {
  sigset_t pipe_signal;  // writing to a closed pipe must be an error, not kill the process
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
  {
    const std::lock_guard lock(mutex);
    tid = gettid();
  }
  while (one_round()) {
  }
  take_work(gettid(), totals);
  const bool unended = capturing && !files.empty();
  files.clear();
  connection.reset();
  listener.reset();
  unlinkat(socket_dir.get(), socket_name.c_str(), 0);
  if (unended) {
    fail(Error{Code::data_loss, "image stream: CRIU did not complete an image"});
  }
  {
    const std::lock_guard lock(mutex);
    seen = totals;
    ended = true;
  }
  answered.notify_all();
}

ImageStreamer::ImageStreamer(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<ImageStreamer>> ImageStreamer::start(std::shared_ptr<State> state,
                                                            const std::string& images_dir,
                                                            const std::string& socket_dir,
                                                            const char* socket_name) {
  const std::string written_dir = state->held ? state->held->own_path() : images_dir;
  for (const auto& [folder, path] :
       {std::pair(&state->dir, &written_dir), std::pair(&state->socket_dir, &socket_dir)}) {
    *folder = FileDescriptor(open(path->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder->valid()) return system_error("cannot open the directory " + *path, errno);
  }
  state->socket_name = socket_name;
  unlinkat(state->socket_dir.get(), socket_name, 0);  // left by a run that was killed
  state->wake = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  state->listener = FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!state->wake.valid() || !state->listener.valid()) return stream_error("make a socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Name the folder by its descriptor: its own path may be too long for the address of a socket.
  const std::string path =
      "/proc/self/fd/" + std::to_string(state->socket_dir.get()) + "/" + socket_name;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  if (bind(state->listener.get(), generic, sizeof address) != 0 ||
      listen(state->listener.get(), 1) != 0) {
    return stream_error("listen in its directory", errno);
  }
  state->thread = std::thread([state, writing = std::make_unique<BusyPaths::Work>(
                                          written(), images_dir)] { state->run(); });
  return std::unique_ptr<ImageStreamer>(new ImageStreamer(std::move(state)));
}

Result<std::unique_ptr<ImageStreamer>> ImageStreamer::capture(const std::string& images_dir,
                                                              const std::string& socket_dir,
                                                              const Encoding& encoding, Moved moved,
                                                              std::shared_ptr<HeldImages> held) {
  if (Result<void> ok = check_encoding(encoding); !ok) return ok.error();
  auto state = std::make_shared<State>();
  state->encoding = encoding;
  state->moved = std::move(moved);
  state->held = std::move(held);
  return start(std::move(state), images_dir, socket_dir, kCaptureSocket);
}

Result<std::unique_ptr<ImageStreamer>> ImageStreamer::serve(const std::string& images_dir,
                                                            const std::string& socket_dir,
                                                            Moved moved) {
  auto state = std::make_shared<State>();
  state->capturing = false;
  state->moved = std::move(moved);
  return start(std::move(state), images_dir, socket_dir, kServeSocket);
}

void wait_for_streamer(const std::string& images_dir) {
  written().wait(images_dir);
}

ImageStreamer::~ImageStreamer() {
  static_cast<void>(finish(std::chrono::seconds(3)));
}

Result<void> ImageStreamer::wait_until_written() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  s.settling = true;
  const std::uint64_t one = 1;
  static_cast<void>(write(s.wake.get(), &one, sizeof one));
  s.answered.wait(lock, [&] { return !s.settling || s.error || s.ended; });
  return s.error ? Result<void>(*s.error) : Result<void>();
}

void ImageStreamer::report() {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  if (!s.moved) return;
  Streamed now = s.seen;
  if (!s.ended) {
    if (s.moving_since_ns != 0) now.busy_ns += monotonic_ns() - s.moving_since_ns;
    take_work(s.tid, now);
  }
  s.moved(now);
}

Result<Streamed> ImageStreamer::finish(std::chrono::milliseconds patience) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  if (s.thread.joinable()) {
    s.ending = true;
    const std::uint64_t one = 1;
    static_cast<void>(write(s.wake.get(), &one, sizeof one));
    s.abandoned = !join_or_leave(
        s.thread, lock, s.answered, [&s] { return s.ended; }, patience);
  }
  if (s.error) return *s.error;
  if (s.abandoned) {
    return Error{Code::deadline_exceeded, "image stream: the disk of the images does not answer"};
  }
  return s.totals;
}

}  // namespace kymo::criu
