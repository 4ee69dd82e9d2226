#pragma once

#include <grpcpp/grpcpp.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "client/client.h"
#include "verbs.h"

namespace kymo::cli {

// Adds --progress, for verbs whose request may take long.
void add_progress_option(CLI::App& verb, Context& context);
// Whether the user wants a progress bar and it can be drawn.
bool shows_progress(const Context& context);
std::string new_request_id();

// Draws the progress of a request on stderr, when the request has run for a fifth of a second and
// until the object is destroyed. Before that, it prints the daemon's forecast for a deadline.
//
// Threads:   only its own thread draws.
// Ownership: refers to the client.
class ProgressBar {
 public:
  // If `draws` is false, it only prints the daemon's forecast; if `quiet`, only one that warns.
  ProgressBar(client::Client& client, std::string request_id, bool draws, bool quiet);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  void follow();

  client::Client& client_;
  const std::string request_id_;
  const bool draws_;
  const bool quiet_;
  std::promise<void> over_;
  grpc::ClientContext call_;
  std::thread thread_;
};

// A bar for this request, which must have its id. Null if there is nothing to show.
template <class Request>
std::unique_ptr<ProgressBar> show_progress(const Context& context, client::Client& client,
                                           const Request& request, bool has_deadline = false) {
  const bool draws = shows_progress(context);
  if (!draws && !has_deadline) return nullptr;
  return std::make_unique<ProgressBar>(client, request.request_id(), draws, context.quiet);
}

}  // namespace kymo::cli
