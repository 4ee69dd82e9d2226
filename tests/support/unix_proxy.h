#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace kymo::test {

// A socket that passes everything on to another one, in both directions. Before it passes on the first bytes of a client
// that have this text in them, it calls `before`: so a test can do something between two calls of a client.
class UnixProxy {
 public:
  UnixProxy(std::string from, std::string to, std::string text, std::function<void()> before);
  ~UnixProxy();
  UnixProxy(const UnixProxy&) = delete;
  UnixProxy& operator=(const UnixProxy&) = delete;

 private:
  void serve();
  void pass_on(const FileDescriptor& client);

  const std::string to_;
  const std::string text_;
  std::function<void()> before_;
  std::once_flag called_;
  FileDescriptor listener_;
  FileDescriptor stop_;
  std::vector<std::thread> clients_;
  std::thread thread_;
};

}  // namespace kymo::test
