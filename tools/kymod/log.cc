#include "kymod/log.h"

#include <poll.h>
#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/own_thread.h"
#include "lens/report/human.h"

namespace kymo {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMaxLines = 1000;
constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;
constexpr std::chrono::seconds kLastWords{1};

// Makes the text of a line printable, because it may contain names from a request.
class PrintableText : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const std::string text = report::printable({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableText>();
  }
};

const char* color_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "\033[36m";
    case spdlog::level::warn:
      return "\033[33m\033[1m";
    case spdlog::level::err:
    case spdlog::level::critical:
      return "\033[31m\033[1m";
    default:
      return "\033[32m";
  }
}

bool has_colors() {
  const char* const none = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) != 0 && spdlog::details::os::is_color_terminal() &&
         (none == nullptr || *none == '\0');
}

// Waits until the text is written. Returns false if stderr has no reader any more.
bool write_to_stderr(std::string_view text) {
  for (;;) {
    std::size_t written = 0;
    const int cause = write_all(STDERR_FILENO, text, &written);
    if (cause == 0) return true;
    if (cause != EAGAIN) return false;
    text.remove_prefix(written);
    pollfd room{STDERR_FILENO, POLLOUT, 0};
    static_cast<void>(poll(&room, 1, -1));
  }
}

// One thread writes the lines from a queue, so that a full pipe, a stopped terminal or a slow disk
// blocks only this thread.
//
// Threads:   any.
// Ownership: it is never destroyed, because its thread may be in a write() that does not return.
class StderrSink : public spdlog::sinks::sink {
 public:
  StderrSink() : colors_(has_colors()) {
    if (const Result<void> begun = on_own_thread([this] { write_lines(); }); !begun) {
      throw std::runtime_error(begun.error().message);
    }
  }

  void log(const spdlog::details::log_msg& message) override {
    const std::lock_guard lock(mutex_);
    try {
      queue(line_of(message));
    } catch (const std::exception&) {  // no memory
      ++lost_;
    }
  }
  void count_lost() {
    const std::lock_guard lock(mutex_);
    ++lost_;
  }
  void flush() override {
    std::unique_lock lock(mutex_);
    written_.wait_for(lock, kLastWords, [this] { return waiting_.empty() && !writing_; });
  }
  void set_pattern(const std::string& pattern) override {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    const std::lock_guard lock(mutex_);
    formatter_ = std::move(formatter);
  }

 private:
  std::string line_of(const spdlog::details::log_msg& message) {
    message.color_range_start = 0;
    message.color_range_end = 0;
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::string line(text.data(), text.size());
    if (colors_ && message.color_range_end > message.color_range_start) {
      line.insert(message.color_range_end, "\033[m");
      line.insert(message.color_range_start, color_of(message.level));
    }
    return line;
  }

  void queue(std::string line) {
    if (waiting_.size() >= kMaxLines || bytes_ + line.size() > kMaxBytes) {
      ++lost_;
      return;
    }
    const std::size_t size = line.size();
    waiting_.push_back(std::move(line));
    bytes_ += size;
    more_.notify_one();
  }

  void write_lines() {
    std::unique_lock lock(mutex_);
    for (;;) {
      more_.wait(lock, [this] { return !waiting_.empty(); });
      const std::string line = std::move(waiting_.front());
      waiting_.pop_front();
      bytes_ -= line.size();
      writing_ = true;
      lock.unlock();
      const bool written = write_to_stderr(line);
      lock.lock();
      if (!written) ++lost_;
      if (written && lost_ != 0 && waiting_.empty()) report_lost_lines(lock);
      writing_ = false;
      if (waiting_.empty()) written_.notify_all();
    }
  }

  void report_lost_lines(std::unique_lock<std::mutex>& lock) {
    const std::size_t lost = std::exchange(lost_, 0);
    lock.unlock();
    std::array<char, 80> text{};  // needs no memory
    std::snprintf(text.data(), text.size(), "(%zu log lines were lost: stderr was not read)\n",
                  lost);
    const bool written = write_to_stderr(text.data());
    lock.lock();
    if (!written) lost_ += lost;
  }

  const bool colors_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::condition_variable written_;
  std::unique_ptr<spdlog::formatter> formatter_ = std::make_unique<spdlog::pattern_formatter>();
  std::deque<std::string> waiting_;  // guarded by mutex_, like the next three
  std::size_t bytes_ = 0;            // the size of waiting_
  std::size_t lost_ = 0;             // the number of lines
  bool writing_ = false;             // the thread is writing a line that is not in waiting_
};

// Never freed: when the program ends, a request may still log, and the sink's thread may be in a
// write().
std::shared_ptr<spdlog::logger>* kept = nullptr;

}  // namespace

void begin_log(const std::string& level) {
  const auto sink = std::make_shared<StderrSink>();
  auto log = std::make_shared<spdlog::logger>("kymod", sink);
  kept = new std::shared_ptr<spdlog::logger>(log);
  // By default, spdlog writes its own errors to stderr, which could block.
  log->set_error_handler([lines = sink.get()](const std::string&) { lines->count_lost(); });
  auto pattern = std::make_unique<spdlog::pattern_formatter>();
  pattern->add_flag<PrintableText>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %*");
  log->set_formatter(std::move(pattern));
  spdlog::set_default_logger(log);
  spdlog::set_level(spdlog::level::from_str(level));
}

void end_log() {
  (*kept)->flush();
}

void print_line(const std::string& line) {
  const std::string text = line + '\n';
  const auto until = steady_clock::now() + kLastWords;
  // If poll() says that a pipe is writable, a write of up to PIPE_BUF bytes does not block.
  for (std::size_t at = 0; at < text.size(); at += PIPE_BUF) {
    pollfd err{STDERR_FILENO, POLLOUT, 0};
    int ready = -1;
    do {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
      ready = poll(&err, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    } while (ready < 0 && errno == EINTR);
    std::size_t written = 0;
    if (ready != 1 || write_all(STDERR_FILENO, text.substr(at, PIPE_BUF), &written) != 0) {
      return;  // the failure cannot be reported
    }
  }
}

}  // namespace kymo
