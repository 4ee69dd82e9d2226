#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "checkpoint/criu/drive/held_images.h"
#include "checkpoint/criu/drive/streamed_file.h"
#include "kymo/result.h"

namespace kymo::criu {

// The image streamer of one `criu dump --stream` or `criu restore --stream`. CRIU asks it for files
// over a socket in the directory that CRIU takes for the images directory, and hands it one end of
// a pipe for each file (the protocol of criu-image-streamer). Each image is a file of its own in
// the images directory, compressed or not.
//
// The pages that CRIU has put into a pipe are not copies but the process's own pages. They change
// when the process runs on. So wait_until_written() must return before CRIU lets the process go.
//
// Threads:   it has one thread, which calls `moved`, as report() does. Call the members from one other thread.
// Ownership: it removes the socket and closes every pipe when it ends.
// Errors:    the first error is kept, and its pipe is closed, which makes CRIU fail. Causes: no
//            space, a name that no image can have, an invalid request, a damaged stored image.
class ImageStreamer {
 public:
  using Moved = std::function<void(const Streamed& so_far)>;

  // Starts a streamer for a dump into the directory (capture), or for a restore from it (serve). It
  // listens in `socket_dir` when the function returns. If `held` is set, it
  // writes into that folder, which remembers each image.
  static Result<std::unique_ptr<ImageStreamer>> capture(const std::string& images_dir,
                                                        const std::string& socket_dir,
                                                        const Encoding& encoding, Moved moved,
                                                        std::shared_ptr<HeldImages> held = nullptr);
  static Result<std::unique_ptr<ImageStreamer>> serve(const std::string& images_dir,
                                                      const std::string& socket_dir, Moved moved);
  ~ImageStreamer();
  ImageStreamer(const ImageStreamer&) = delete;
  ImageStreamer& operator=(const ImageStreamer&) = delete;

  // Waits until all data that was sent so far is in files, and the folder was checked (check_before_end()).
  // It may be called on a third thread.
  // Errors: the first error so far, also of that check.
  Result<void> wait_until_written();
  // Calls `moved` on this thread, with what the other one has done until now, and how long it ran, also if it waits for the
  // disk now, or finish() has failed.
  void report();
  // Call it after CRIU has ended. It takes the rest of the data from the pipes and ends the thread.
  // Errors: the first error, for example an image that CRIU did not finish; deadline_exceeded if
  //         the disk does not answer within `patience`. The thread then goes on alone.
  Result<Streamed> finish(std::chrono::milliseconds patience);

 private:
  struct State;
  explicit ImageStreamer(std::shared_ptr<State> state);
  static Result<std::unique_ptr<ImageStreamer>> start(std::shared_ptr<State> state,
                                                      const std::string& images_dir,
                                                      const std::string& socket_dir,
                                                      const char* socket_name);
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
};

// Waits until no streamer writes into this images directory. A streamer that was left to a disk
// that does not answer (finish()) goes on writing what it has, once the disk answers.
void wait_for_streamer(const std::string& images_dir);

}  // namespace kymo::criu
