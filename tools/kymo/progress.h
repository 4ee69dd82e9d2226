#pragma once

#include <grpcpp/grpcpp.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "client/client.h"
#include "verbs.h"

namespace kymo::cli {

// --progress, for the verbs that make a request which takes time.
void add_progress_option(CLI::App& verb, Context& context);
// Whether a bar is wanted, and there is somewhere to draw it.
bool shows_progress(const Context& context);
std::string new_request_id();

// Draws on stderr how far a request has come, from when it has run for a fifth of a second until
// the object goes; before that it says there what the daemon foretells of a deadline.
//
// Threads: one of its own, which alone draws. Ownership: refers to the client.
class ProgressBar {
 public:
  // Not drawn: it only says what the daemon foretells.
  ProgressBar(client::Client& client, std::string request_id, bool draws);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  void follow();

  client::Client& client_;
  const std::string request_id_;
  const bool draws_;
  std::promise<void> over_;
  grpc::ClientContext call_;
  std::thread thread_;
};

// A bar for this request, which has its id; null where nothing is to be said.
template <class Request>
std::unique_ptr<ProgressBar> show_progress(const Context& context, client::Client& client,
                                           const Request& request, bool has_deadline = false) {
  const bool draws = shows_progress(context);
  if (!draws && !has_deadline) return nullptr;
  return std::make_unique<ProgressBar>(client, request.request_id(), draws);
}

}  // namespace kymo::cli
