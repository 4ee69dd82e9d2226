#pragma once

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string>

namespace kymo::test {

// Keeps the lines that are logged. Threads: any.
class TextSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text_.append(message.payload.data(), message.payload.size()).append("\n");
  }
  void flush_() override {}

 private:
  std::string text_;  // guarded by mutex_
};

// Collects the lines that are logged while this object exists.
class Logged {
 public:
  Logged() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink_));
  }
  ~Logged() { spdlog::set_default_logger(before_); }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;
  [[nodiscard]] std::string text() const { return sink_->text(); }

 private:
  const std::shared_ptr<TextSink> sink_ = std::make_shared<TextSink>();
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace kymo::test
