#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kymo/result.h"

namespace kymo::view {

// Serves a whole recording, of any length, to a browser on this machine. The page is that of
// html_report(), but it requests the samples that it shows.
//
// Threads:   those of the server, from open() until the object is destroyed.
// Ownership: owns a temporary file with the samples, which has been unlinked.
// Errors:    open(): those of reading, of the temporary file (TMPDIR), and of the port.
// Cost:      open() reads the file twice; 41 bytes of memory for each 1,024 values.
class RecordingView {
 public:
  // `port`: a port on loopback. 0: any free port.
  static Result<std::unique_ptr<RecordingView>> open(const std::string& path, std::uint16_t port);
  ~RecordingView();
  RecordingView(const RecordingView&) = delete;
  RecordingView& operator=(const RecordingView&) = delete;

  // The address of the page, with the token that it requires.
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::string url_once() const;  // see http::Server

 private:
  struct State;
  explicit RecordingView(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::view
