#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kymo/result.h"

namespace kymo::view {

// A recording of any length, served whole to a browser on this machine: the page of html_report(),
// which asks for the samples of what it shows.
//
// Threads:   those of the server, from open() to the end of its life.
// Ownership: owns a temporary file with the packed samples, which has no name any more.
// Errors:    open(): those of reading, of the temporary file (TMPDIR), and of the port.
// Cost:      a pass over the file; 41 bytes of memory for each 1,024 values.
class RecordingView {
 public:
  // `port` of loopback; 0: any free one.
  static Result<std::unique_ptr<RecordingView>> open(const std::string& path, std::uint16_t port);
  ~RecordingView();
  RecordingView(const RecordingView&) = delete;
  RecordingView& operator=(const RecordingView&) = delete;

  // Where it is, with the token that opens it.
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::string url_once() const;  // as http::Server's

 private:
  struct State;
  explicit RecordingView(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::view
