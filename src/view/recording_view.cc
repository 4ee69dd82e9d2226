#include "view/recording_view.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "analysis/summary.h"
#include "base/file.h"
#include "http/server.h"
#include "http/token_file.h"
#include "report/html_report.h"
#include "report/packed_rows.h"

namespace kymo::view {
namespace {

// The maximum size of a reply. The page requests less at a time.
constexpr std::uint64_t kMostBytes = 256U << 20U;

Result<FileDescriptor> make_spool() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return system_error("find the folder for temporary files", error.value());
  std::string name = folder / "kymo-view-XXXXXX";
  FileDescriptor fd(mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) return system_error("make a temporary file in " + folder.string(), errno);
  unlink(name.c_str());
  return fd;
}

}  // namespace

struct RecordingView::State {
  FileDescriptor spool;
  analysis::Summary summary;
  report::PackedRows packed;
  std::unique_ptr<http::Server> server;  // destroyed first: its threads use the other members

  [[nodiscard]] http::Reply page() const;
  [[nodiscard]] http::Reply samples(const http::Request& request) const;
};

http::Reply RecordingView::State::page() const {
  const Result<std::string> nonce = http::make_token();
  if (!nonce) return http::error_reply(nonce.error());
  Result<std::string> html = report::report_page(summary, packed, *nonce, true);
  if (!html) return http::error_reply(html.error());
  return http::page_reply(std::move(html).value(), *nonce);
}

http::Reply RecordingView::State::samples(const http::Request& request) const {
  const std::size_t blocks = packed.block_offsets.size() - 1;
  const auto first = request.number("first", UINT64_MAX, UINT64_MAX);
  const auto last = request.number("last", UINT64_MAX, UINT64_MAX);
  if (!first || !last || *first > *last || *last >= blocks) {
    return http::error_reply({Code::invalid_argument,
                              "first and last: wanted numbers of blocks, first not above last, "
                              "below " +
                                  std::to_string(blocks)});
  }
  const std::uint64_t begin = packed.block_offsets[*first];
  const std::uint64_t size = packed.block_offsets[*last + 1] - begin;
  if (size > kMostBytes) {
    return http::error_reply({Code::invalid_argument, "first and last: too many blocks at once"});
  }
  http::Reply reply{200, "application/octet-stream", std::string(size, '\0'), {}};
  for (std::uint64_t done = 0; done < size;) {
    const ssize_t got =
        pread(spool.get(), reply.body.data() + done, size - done, static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return http::error_reply(system_error("read the temporary file", errno));
    done += static_cast<std::uint64_t>(got);
  }
  return reply;
}

RecordingView::RecordingView(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordingView::~RecordingView() = default;

Result<std::unique_ptr<RecordingView>> RecordingView::open(const std::string& path,
                                                           std::uint16_t port) {
  auto state = std::make_unique<State>();
  Result<analysis::Summary> summary = analysis::summarize(path);
  if (!summary) return summary.error();
  state->summary = std::move(summary).value();
  Result<FileDescriptor> spool = make_spool();
  if (!spool) return spool.error();
  state->spool = std::move(spool).value();
  report::PackRequest request;
  request.spool = state->spool.get();
  Result<report::PackedRows> packed = report::pack_rows(state->summary, request);
  if (!packed) return packed.error();
  state->packed = std::move(packed).value();
  Result<std::string> token = http::make_token();
  if (!token) return token.error();
  http::Server::Options options;
  options.port = port;
  options.token = std::move(token).value();
  options.port_flag = "--port";
  state->server = std::make_unique<http::Server>(std::move(options));
  State& shared = *state;
  state->server->page("/", [&shared](const http::Request&) { return shared.page(); });
  state->server->get("/samples",
                     [&shared](const http::Request& asked) { return shared.samples(asked); });
  if (Result<void> started = state->server->start(); !started) return started.error();
  return std::unique_ptr<RecordingView>(new RecordingView(std::move(state)));
}

std::string RecordingView::url_once() const {
  return state_->server->url_once("/");
}

std::string RecordingView::url() const {
  return state_->server->url("/");
}

}  // namespace kymo::view
