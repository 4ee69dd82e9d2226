#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "criu/streamed_file.h"
#include "kymo/result.h"

namespace kymo::criu {

// The image streamer of one `criu dump --stream` or `criu restore --stream`: CRIU asks it for files
// over a socket in the images directory and hands it one end of a pipe for each (the protocol of
// criu-image-streamer). Every image becomes a file of its own in that directory, compressed or not.
//
// What CRIU has written into a pipe are still the process's own pages, not copies: once it runs on,
// they change. So before CRIU lets a process go, settle() must have answered.
//
// Threads:   one of its own, on which `moved` is called; the members from one other.
// Ownership: the socket is gone with it, every pipe closed.
// Errors:    the first is kept, and its pipe closed, upon which CRIU fails: no space, a name that
//            no image has, a request that is none, a stored image that is damaged.
class ImageStreamer {
 public:
  using Moved = std::function<void(const Streamed& so_far)>;

  // For a dump into the directory, or a restore from it. Listens when it returns.
  static Result<std::unique_ptr<ImageStreamer>> capture(const std::string& images_dir,
                                                        const Encoding& encoding, Moved moved);
  static Result<std::unique_ptr<ImageStreamer>> serve(const std::string& images_dir, Moved moved);
  ~ImageStreamer();
  ImageStreamer(const ImageStreamer&) = delete;
  ImageStreamer& operator=(const ImageStreamer&) = delete;

  // Waits until all that was sent so far is in files. Errors: what went wrong until now;
  // deadline_exceeded.
  Result<void> settle(std::chrono::steady_clock::time_point until);
  // CRIU has ended: takes what still lies in the pipes, and ends. Errors: what went wrong, an image
  // that CRIU never ended among it; deadline_exceeded: the disk does not answer within `patience`,
  // and the thread is left to itself.
  Result<Streamed> finish(std::chrono::milliseconds patience);

 private:
  struct State;
  explicit ImageStreamer(std::shared_ptr<State> state);
  static Result<std::unique_ptr<ImageStreamer>> start(std::shared_ptr<State> state,
                                                      const std::string& images_dir,
                                                      const char* socket_name);
  std::shared_ptr<State> state_;  // the thread's, too, which may outlive this
};

}  // namespace kymo::criu
