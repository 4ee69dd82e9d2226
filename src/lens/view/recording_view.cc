#include "lens/view/recording_view.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/confine/run.h"
#include "base/file.h"
#include "base/http/server.h"
#include "base/http/token_file.h"
#include "base/json_text.h"
#include "base/recording_name.h"
#include "lens/analysis/summary.h"
#include "lens/report/html_report.h"
#include "lens/report/packed_rows.h"

namespace kymo::view {
namespace {

// The maximum size of a reply. The page requests less at a time.
constexpr std::uint64_t kMaxBytes = 256U << 20U;

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

// What is read of a recording, in a process without rights.
struct Packed {
  std::vector<std::uint64_t> offsets;  // of each block in the spool, and of its end
  std::string data;                    // of the page
};

// The offsets in one line, then the data of the page.
Result<std::string> pack(const std::string& path, int spool) {
  const Result<analysis::Summary> summary = analysis::summarize(path);
  if (!summary) return summary.error();
  report::PackRequest request;
  request.spool = spool;
  const Result<report::PackedRows> rows = report::pack_rows(*summary, request);
  if (!rows) return rows.error();
  return json_text(nlohmann::json(rows->block_offsets)) + '\n' +
         report::served_report_data(*summary, *rows);
}

// The text of pack(), which is trusted no more than the recording.
Result<Packed> unpack(const std::string& path, const std::string& text, std::uint64_t spooled) {
  const std::size_t line = text.find('\n');
  const nlohmann::json offsets = parse_json(text.substr(0, line));
  Packed packed;
  for (const nlohmann::json& said : offsets) {
    const std::uint64_t offset = said.is_number_unsigned() ? said.get<std::uint64_t>() : UINT64_MAX;
    const std::uint64_t before = packed.offsets.empty() ? 0 : packed.offsets.back();
    if (offset < before || offset > spooled) break;
    packed.offsets.push_back(offset);
  }
  if (line == std::string::npos || packed.offsets.empty() ||
      packed.offsets.size() != offsets.size()) {
    return Error{
        Code::data_loss,
        "view " + path + ": the helper process that reads it sent an answer that is not valid"};
  }
  packed.data = text.substr(line + 1);
  return packed;
}

confine::Bounds bounds_for(const std::string& path, int spool) {
  constexpr std::chrono::hours kTime{1};
  const std::string stem = recording_stem(path);
  confine::Bounds bounds;
  bounds.memory_bytes = std::uint64_t{8} << 30;
  bounds.answer_bytes = std::uint64_t{2} << 30;
  bounds.cpu_time = kTime;
  bounds.time = std::chrono::seconds(0);  // its user can end it
  bounds.threads = true;
  bounds.descriptors = {spool};
  bounds.readable = {path, stem + ".meta.json", stem + ".gaps.tsv", stem + ".pb.gz",
                     "/proc"};  // to see whether a recorder still runs
  return bounds;
}

std::uint64_t size_of(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

}  // namespace

struct RecordingView::State {
  FileDescriptor spool;
  Packed packed;
  std::unique_ptr<http::Server> server;  // destroyed first: its threads use the other members

  [[nodiscard]] http::Reply page() const;
  [[nodiscard]] http::Reply samples(const http::Request& request) const;
};

http::Reply RecordingView::State::page() const {
  const Result<std::string> nonce = http::make_token();
  if (!nonce) return http::error_reply(nonce.error());
  Result<std::string> html = report::report_page(packed.data, *nonce);
  return html ? http::page_reply(*std::move(html), *nonce) : http::error_reply(html.error());
}

http::Reply RecordingView::State::samples(const http::Request& request) const {
  const std::size_t blocks = packed.offsets.size() - 1;
  const auto first = request.number("first", UINT64_MAX, UINT64_MAX);
  const auto last = request.number("last", UINT64_MAX, UINT64_MAX);
  if (!first || !last || *first > *last || *last >= blocks) {
    return http::error_reply({Code::invalid_argument,
                              "first and last: wanted numbers of blocks, first not above last, "
                              "below " +
                                  std::to_string(blocks)});
  }
  const std::uint64_t begin = packed.offsets[*first];
  const std::uint64_t size = packed.offsets[*last + 1] - begin;
  if (size > kMaxBytes) {
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

Result<std::unique_ptr<RecordingView>> RecordingView::open(const std::string& path) {
  auto state = std::make_unique<State>();
  Result<FileDescriptor> spool = make_spool();
  if (!spool) return spool.error();
  state->spool = *std::move(spool);
  const Result<std::string> text = confine::read_confined(
      bounds_for(path, state->spool.get()), [&] { return pack(path, state->spool.get()); });
  if (!text) return text.error();
  Result<Packed> packed = unpack(path, *text, size_of(state->spool.get()));
  if (!packed) return packed.error();
  if (const auto page = report::report_page(packed->data, ""); !page) return page.error();
  state->packed = *std::move(packed);
  return std::unique_ptr<RecordingView>(new RecordingView(std::move(state)));
}

Result<void> RecordingView::serve(std::uint16_t port) {
  Result<std::string> token = http::make_token();
  if (!token) return token.error();
  http::Server::Options options;
  options.port = port;
  options.token = *std::move(token);
  options.port_flag = "--port";
  State& shared = *state_;
  shared.server = std::make_unique<http::Server>(std::move(options));
  shared.server->page("/", [&shared](const http::Request&) { return shared.page(); });
  shared.server->get("/samples",
                     [&shared](const http::Request& asked) { return shared.samples(asked); });
  return shared.server->start();
}

std::string RecordingView::url_once() const {
  return state_->server->url_once("/");
}

std::string RecordingView::url() const {
  return state_->server->url("/");
}

}  // namespace kymo::view
