#include "kymod/log.h"

#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/file.h"
#include "report/human.h"

namespace kymo {
namespace {

constexpr std::size_t kMostWaiting = 1000;  // lines
constexpr std::chrono::milliseconds kLastWords{1000};

// A line of the log is one line, whatever names a request brought.
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

bool can_write(std::chrono::milliseconds within) {
  pollfd err{STDERR_FILENO, POLLOUT, 0};
  return poll(&err, 1, static_cast<int>(within.count())) == 1;
}

void write_line(const std::string& line) {
  std::size_t written = 0;
  static_cast<void>(write_all(STDERR_FILENO, line, &written));  // there is nobody else to tell
}

// Writes a line at once where that cannot wait, as into a file or a pipe that is read; else a
// thread does it. A pipe that can be written to at all takes PIPE_BUF bytes.
class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  StderrSink() : thread_([this] { drain(); }) {}
  ~StderrSink() override {
    {
      const std::lock_guard lock(queue_mutex_);
      stopping_ = true;
    }
    more_.notify_all();
    thread_.join();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::string line(text.data(), text.size());
    const std::lock_guard lock(queue_mutex_);
    if (waiting_.empty() && !writing_ && line.size() <= PIPE_BUF &&
        can_write(std::chrono::milliseconds(0))) {
      return write_line(line);
    }
    if (waiting_.size() >= kMostWaiting) {
      ++lost_;
      return;
    }
    waiting_.push_back(std::move(line));
    more_.notify_all();
  }
  void flush_() override {}

 private:
  void drain() {
    std::unique_lock lock(queue_mutex_);
    for (;;) {
      more_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      writing_ = true;
      lock.unlock();
      const bool writable = can_write(kLastWords);
      lock.lock();
      if (!writable && stopping_) return;
      if (!writable) continue;
      std::string line = std::move(waiting_.front());
      waiting_.pop_front();
      if (lost_ != 0 && waiting_.empty()) {
        line += "(" + std::to_string(lost_) + " lines are lost: nobody read them)\n";
        lost_ = 0;
      }
      lock.unlock();
      for (std::size_t at = 0; at < line.size(); at += PIPE_BUF) {
        if (can_write(kLastWords)) write_line(line.substr(at, PIPE_BUF));
      }
      lock.lock();
      writing_ = !waiting_.empty();
    }
  }

  std::mutex queue_mutex_;
  std::condition_variable more_;
  std::deque<std::string> waiting_;  // guarded by queue_mutex_, as what follows
  std::size_t lost_ = 0;
  bool writing_ = false;  // the thread is at a line that came earlier
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace

void begin_log(const std::string& level) {
  spdlog::sink_ptr sink;
  if (isatty(STDERR_FILENO) != 0) {
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  } else {
    sink = std::make_shared<StderrSink>();
  }
  auto log = std::make_shared<spdlog::logger>("kymod", std::move(sink));
  auto pattern = std::make_unique<spdlog::pattern_formatter>();
  pattern->add_flag<PrintableText>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %*");
  log->set_formatter(std::move(pattern));
  spdlog::set_default_logger(log);
  spdlog::set_level(spdlog::level::from_str(level));
}

void end_log() {
  spdlog::shutdown();
}

}  // namespace kymo
