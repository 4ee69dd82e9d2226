#include "daemon/web/past.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/recording_name.h"
#include "daemon/web/live.h"
#include "lens/analysis/gap_file.h"
#include "lens/analysis/parallel_rows.h"
#include "lens/analysis/row_range.h"
#include "lens/analysis/tsv_reader.h"
#include "lens/report/envelope.h"
#include "lens/report/human.h"
#include "recorder/sampling/files/recording_parts.h"

namespace kymo::daemon {
namespace {

namespace fs = std::filesystem;

// The most bytes that are read in full for one request, which takes some tenths of a second. If
// there are more, only some rows are read.
constexpr std::uint64_t kMaxBytesRead = 256U << 20U;
// The assumed compression ratio of rows with zstd. A compressed part is read from its start to the
// end of the range.
constexpr std::uint64_t kPackedTo = 8;
constexpr std::uint64_t kDefaultPoints = 2000;
constexpr std::uint64_t kMaxPoints = 10'000;
constexpr std::uint64_t kMaxFigures = 500'000;  // points times columns, in one reply
constexpr std::size_t kMaxGaps = 2000;
constexpr int kMaxRounds = 4;

// One file of the daemon-wide recording.
struct Part {
  std::string path;
  std::uint64_t number = 0;
  std::uint64_t first_ns = 0;
};

// The number of a part: 0 for NAME.tsv, N for NAME.N.tsv. Returns nothing for other files.
std::optional<std::uint64_t> part_number(const std::string& path, const std::string& file) {
  if (file == path) return 0;
  const std::string stem = recording_stem(path) + ".";
  if (file.rfind(stem, 0) != 0) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(file.data() + stem.size(), file.data() + file.size(), number);
  if (error != std::errc() || part_path(path, number) != file) return std::nullopt;
  static_cast<void>(end);
  return number;
}

// The time of a file's first row. Returns nothing if it has no row or is no recording.
std::optional<std::uint64_t> first_time_in(const std::string& path) {
  auto reader = analysis::TsvReader::open(path);
  if (!reader) return std::nullopt;
  if (const auto text = reader->plain_text()) {
    const auto first = analysis::first_time(*text);
    return first ? *first : std::nullopt;
  }
  analysis::RowBlock block(reader->columns().size() + 1, 1);
  const Result<bool> more = reader->next(block);
  if (!more || !*more) return std::nullopt;
  return block.times()[0];
}

// The parts that exist, oldest first.
std::vector<Part> parts_on_disk(const RecorderRun& run) {
  std::vector<Part> parts;
  if (run.log_path().empty()) return parts;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(run.log_path()).parent_path(), error)) {
    if (const auto number = part_number(run.log_path(), entry.path())) {
      parts.push_back({entry.path(), *number, 0});
    }
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.number < b.number; });
  return parts;
}

struct PastRequest {
  std::shared_ptr<const RecorderRun> run;
  std::vector<report::Envelope::Column> columns;
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 0;
  std::uint64_t span_ns = 0;
  std::uint64_t interval_ns = 0;
};

Result<std::uint64_t> instant(const http::Request& request, const std::string& name) {
  if (request.value(name).empty()) return Error{Code::invalid_argument, name + " is missing"};
  return request.number(name, 0, INT64_MAX);
}

Result<PastRequest> parse_past(const http::Request& request, const Recorder& recorder) {
  PastRequest out;
  const auto from = instant(request, "from_ns");
  if (!from) return from.error();
  const auto to = instant(request, "to_ns");
  if (!to) return to.error();
  if (*from >= *to) {
    return Error{Code::invalid_argument, "from_ns=" + std::to_string(*from) +
                                             " is not before to_ns=" + std::to_string(*to)};
  }
  const auto points = request.number("points", kDefaultPoints, kMaxPoints);
  if (!points) return points.error();
  out.run = recorder.latest();
  if (out.run == nullptr) {
    return Error{Code::failed_precondition,
                 "nothing was recorded: start the recorder with kymo recorder start"};
  }
  auto columns = parse_columns(request.value("columns"), out.run->info());
  if (!columns) return columns.error();
  if (columns->empty()) return Error{Code::invalid_argument, "columns is missing"};
  if (*points == 0 || *points * columns->size() > kMaxFigures) {
    return Error{Code::invalid_argument,
                 "points=" + std::to_string(*points) + ": for " + std::to_string(columns->size()) +
                     " columns, give a number from 1 to " +
                     std::to_string(std::min(kMaxPoints, kMaxFigures / columns->size()))};
  }
  out.columns = std::move(columns).value();
  out.from_ns = *from;
  out.to_ns = *to;
  const std::uint64_t span = (*to - *from) / *points;
  out.interval_ns = static_cast<std::uint64_t>(out.run->info().interval.count());
  out.span_ns = span <= out.interval_ns ? 0 : span;
  return out;
}

// The number of points of the request between two times.
std::uint64_t points_between(const PastRequest& request, std::uint64_t from_ns,
                             std::uint64_t to_ns) {
  const std::uint64_t first = std::max(from_ns, request.from_ns);
  const std::uint64_t last = std::min(to_ns, request.to_ns);
  if (last <= first || request.span_ns == 0) return kMaxPoints;
  return std::min((last - first) / request.span_ns + 1, kMaxPoints);
}

// Reads a range of rows from the parts and from memory into one envelope.
class Past {
 public:
  explicit Past(const PastRequest& request)
      : request_(request), envelope_(request.columns, request.span_ns, request.interval_ns) {}

  // Reads the rows before `until_ns`, the time of the oldest row in memory.
  // Errors: those of reading.
  Result<void> read_files(std::uint64_t until_ns);
  void read_memory();
  nlohmann::json take();

 private:
  // The earliest time that the next row may have.
  [[nodiscard]] std::uint64_t next_ns() const {
    return last_ns_ ? *last_ns_ + 1 : request_.from_ns;
  }
  // The number of bytes of rows that must be read from a part.
  [[nodiscard]] std::uint64_t bytes_of(const Part& part) const;
  Result<void> read_part(const Part& part, std::uint64_t until_ns);
  // Reads only `points` rows from all over the part, if there are too many to read them all.
  Result<void> outline_part(const Part& part, std::uint64_t until_ns, std::uint64_t points);
  void take_rows(const analysis::RowBlock& rows, std::uint64_t until_ns);
  void read_gaps(const Part& part);
  // To be called in the order of time. Ignores a gap that was added already.
  void add_gap(const Gap& gap) {
    const bool added = !gaps_.empty() && gap.start_ns <= gaps_.back().start_ns;
    if (!added && gap.end_ns >= request_.from_ns && gap.start_ns <= request_.to_ns) {
      gaps_.push_back(gap);
    }
  }

  const PastRequest& request_;
  report::Envelope envelope_;
  std::optional<std::uint64_t> last_ns_;  // time of the last row so far
  std::vector<Gap> gaps_;
  std::vector<std::string> left_out_;
};

void Past::take_rows(const analysis::RowBlock& rows, std::uint64_t until_ns) {
  const auto times = rows.times();
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    if (times[i] >= until_ns || (last_ns_ && times[i] <= *last_ns_)) continue;
    last_ns_ = times[i];
    envelope_.add(times[i],
                  [&](std::size_t k) { return rows.column(request_.columns[k].word)[i]; });
  }
}

std::uint64_t Past::bytes_of(const Part& part) const {
  auto reader = analysis::TsvReader::open(part.path);
  if (!reader) return 0;
  const auto text = reader->plain_text();
  if (!text) {
    std::error_code error;
    const std::uint64_t packed = fs::file_size(part.path, error);
    return error ? 0 : packed * kPackedTo;
  }
  const auto range = analysis::rows_between(*text, next_ns(), request_.to_ns);
  return range ? range->end - range->begin : 0;
}

Result<void> Past::read_part(const Part& part, std::uint64_t until_ns) {
  auto reader = analysis::TsvReader::open(part.path);
  if (!reader) return {};  // the recorder has removed this part, as the oldest one
  if (reader->columns().size() != request_.run->info().columns.size()) return {};
  if (const auto text = reader->plain_text()) {
    const auto range = analysis::rows_between(*text, next_ns(), request_.to_ns);
    if (!range) return range.error();
    const analysis::RowsTaken taken = analysis::take_in_parallel(
        *range, 1, [&](const analysis::RowPiece& piece) { take_rows(piece.rows, until_ns); });
    if (taken.end < range->end) {
      left_out_.push_back(part.path + ": damaged after byte " + std::to_string(taken.end) +
                          ": kymo report says where");
    }
    return {};
  }
  analysis::RowBlock block = reader->make_block();
  for (;;) {
    block.clear();
    const Result<bool> more = reader->next(block);
    if (!more) return more.error();
    if (!*more || block.times().front() > request_.to_ns) return {};
    if (block.times().back() >= next_ns()) {
      take_rows(block, std::min(until_ns, request_.to_ns + 1));
    }
  }
}

Result<void> Past::outline_part(const Part& part, std::uint64_t until_ns, std::uint64_t points) {
  auto reader = analysis::TsvReader::open(part.path);
  if (!reader || reader->columns().size() != request_.run->info().columns.size()) return {};
  const auto text = reader->plain_text();
  if (!text) {
    left_out_.push_back(part.path + ": compressed, and too long to show");
    return {};
  }
  const auto range = analysis::rows_between(*text, next_ns(), request_.to_ns);
  if (!range) return range.error();
  return analysis::sample_rows(*range, points,
                               [&](const analysis::RowBlock& row) { take_rows(row, until_ns); });
}

void Past::read_gaps(const Part& part) {
  std::error_code error;
  const std::string path = recording_stem(part.path) + ".gaps.tsv";
  if (fs::file_size(path, error) > kMaxBytesRead / 16) {
    left_out_.push_back(path + ": too many gaps to show");
    return;
  }
  static_cast<void>(analysis::read_gaps(path, [this](const Gap& gap) { add_gap(gap); }));
}

Result<void> Past::read_files(std::uint64_t until_ns) {
  std::vector<Part> parts = parts_on_disk(*request_.run);
  // From the newest part back, so that older parts than the range needs are not opened.
  std::vector<Part> wanted;
  std::reverse(parts.begin(), parts.end());
  for (Part& part : parts) {
    const auto first = first_time_in(part.path);
    if (!first || *first > request_.to_ns) continue;
    part.first_ns = *first;
    wanted.push_back(part);
    if (*first < next_ns()) break;
  }
  std::reverse(wanted.begin(), wanted.end());
  std::uint64_t bytes = 0;
  for (const Part& part : wanted) bytes += bytes_of(part);
  const bool outlines = bytes > kMaxBytesRead;
  if (outlines) {
    left_out_.push_back(report::bytes(bytes) +
                        " of rows, one of them read for each point: rates are means; zoom in to "
                        "see every spike");
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::uint64_t end_ns = i + 1 < wanted.size() ? wanted[i + 1].first_ns : until_ns;
    Result<void> read = outlines
                            ? outline_part(wanted[i], until_ns,
                                           points_between(request_, wanted[i].first_ns, end_ns))
                            : read_part(wanted[i], until_ns);
    if (!read) return read;
    read_gaps(wanted[i]);
  }
  return {};
}

void Past::read_memory() {
  const RecorderRun& run = *request_.run;
  // Begin earlier: the first rate needs a row that is its window before it.
  const std::uint64_t earlier =
      report::Envelope::rate_window_ns(request_.span_ns, request_.interval_ns) +
      2 * request_.interval_ns;
  const std::uint64_t from =
      last_ns_ ? *last_ns_ + 1 : request_.from_ns - std::min(request_.from_ns, earlier);
  run.read(from, [&](const Rows& rows) {
    for (std::size_t i = 0; i < rows.count; ++i) {
      if (rows.row(i)[0] > request_.to_ns) return;
      envelope_.add({rows.row(i).data(), 1, rows.stride});
    }
  });
  const std::uint64_t known = gaps_.empty() ? 0 : gaps_.back().end_ns;
  for (const Gap& gap : run.cuts().gaps_after(known)) add_gap(gap);
}

nlohmann::json Past::take() {
  nlohmann::json out = envelope_.take(true);
  if (gaps_.size() > kMaxGaps) {
    const auto longer = [](const Gap& a, const Gap& b) {
      return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
    };
    std::nth_element(gaps_.begin(), gaps_.begin() + kMaxGaps, gaps_.end(), longer);
    left_out_.push_back(std::to_string(gaps_.size() - kMaxGaps) + " shorter gaps");
    gaps_.resize(kMaxGaps);
    std::sort(gaps_.begin(), gaps_.end(),
              [](const Gap& a, const Gap& b) { return a.start_ns < b.start_ns; });
  }
  nlohmann::json gaps = nlohmann::json::array();
  for (const Gap& gap : gaps_) {
    gaps.push_back({{"start_ns", gap.start_ns}, {"end_ns", gap.end_ns}, {"ticks", gap.ticks}});
  }
  out["gaps"] = std::move(gaps);
  out["span_ns"] = request_.span_ns;
  out["left_out"] = left_out_;
  return out;
}

// The time of the oldest row in memory; UINT64_MAX if there is none.
std::uint64_t oldest_in_memory(const RecorderRun& run) {
  const std::vector<std::uint64_t> row = run.cuts().copy_rows(0, 1);
  return row.empty() ? UINT64_MAX : row[0];
}

}  // namespace

std::uint64_t oldest_ns(const RecorderRun& run) {
  std::uint64_t oldest = oldest_in_memory(run);
  for (const Part& part : parts_on_disk(run)) {
    const auto first = first_time_in(part.path);
    if (!first) continue;
    oldest = std::min(oldest, *first);
    break;
  }
  return std::min(oldest, run.end_ns());
}

Result<nlohmann::json> recorded_past(const Parts& parts, const http::Request& request) {
  const Result<PastRequest> wanted = parse_past(request, parts.recorder);
  if (!wanted) return wanted.error();
  Past past(*wanted);
  // Rows may be evicted from memory while the files are read. The files then have these rows, and
  // are read again from there.
  std::uint64_t read_until_ns = wanted->from_ns;
  static std::mutex one_at_a_time;  // reading takes the disk and a core, which the recorder needs
  for (int round = 0; round < kMaxRounds && read_until_ns <= wanted->to_ns; ++round) {
    const std::uint64_t in_memory = oldest_in_memory(*wanted->run);
    if (in_memory <= read_until_ns) break;
    const std::lock_guard lock(one_at_a_time);
    if (Result<void> read = past.read_files(in_memory); !read) return read.error();
    read_until_ns = in_memory;
  }
  past.read_memory();
  return past.take();
}

}  // namespace kymo::daemon
