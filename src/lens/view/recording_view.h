#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kymo/result.h"

namespace kymo::view {

// Serves a whole recording, of any length, to a browser on this machine. The page is that of
// report_page(), but it requests the samples that it shows.
//
// A process without rights reads the recording (confine/run.h).
//
// Threads:   those of the server, from serve() until the object is destroyed.
// Ownership: owns a temporary file with the samples, which has been unlinked.
// Errors:    open(): those of reading, of the temporary file (TMPDIR), and of read_confined().
//            serve(): those of the port.
// Cost:      open() reads the file twice; 41 bytes of memory for each 1,024 values.
class RecordingView {
 public:
  // To be called before any thread is started.
  static Result<std::unique_ptr<RecordingView>> open(const std::string& path);
  ~RecordingView();
  RecordingView(const RecordingView&) = delete;
  RecordingView& operator=(const RecordingView&) = delete;

  // `port`: a port on loopback. 0: any free port.
  Result<void> serve(std::uint16_t port);

  // The address of the page, with the token that it requires.
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::string url_once() const;  // see http::Server

 private:
  struct State;
  explicit RecordingView(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kymo::view
