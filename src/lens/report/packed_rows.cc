#include "lens/report/packed_rows.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <optional>
#include <span>

#include "base/file.h"
#include "lens/analysis/reading_clocks.h"
#include "lens/analysis/tsv_reader.h"
#include "lens/report/thinning.h"

namespace kymo::report {
namespace {

static_assert(std::endian::native == std::endian::little, "the page reads little-endian");

constexpr std::size_t kBlock = PackedRows::kBlockRows;
constexpr std::uint8_t kLeftOut = 255;  // the width of a block whose samples are left out
constexpr int kDeflateLevel = 3;  // about 100 MB/s; 6 takes three times as long to save a tenth
constexpr std::size_t kPieceBytes = 256 * 1024;
constexpr std::size_t kProbeBytes = 16 * 1024;

// One deflate stream. Its output is appended to the string of each caller.
class DeflateStream {
 public:
  explicit DeflateStream(int strategy) {
    ok_ = deflateInit2(&stream_, kDeflateLevel, Z_DEFLATED, MAX_WBITS, MAX_MEM_LEVEL - 1,
                       strategy) == Z_OK;
  }
  ~DeflateStream() { deflateEnd(&stream_); }
  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;

  [[nodiscard]] bool ok() const { return ok_; }

  void add(std::span<const std::uint8_t> bytes, int strategy, int flush, std::string& out) {
    // Make room for the whole output: deflateParams() fails if its output does not fit.
    const std::size_t before = out.size();
    out.resize(before + deflateBound(&stream_, bytes.size()) + kPieceBytes);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream_.avail_out = static_cast<uInt>(out.size() - before);
    stream_.avail_in = 0;
    ok_ = ok_ && deflateParams(&stream_, kDeflateLevel, strategy) == Z_OK;
    stream_.next_in = const_cast<Bytef*>(bytes.data());  // zlib only reads it
    stream_.avail_in = static_cast<uInt>(bytes.size());
    ok_ = ok_ && deflate(&stream_, flush) != Z_STREAM_ERROR && stream_.avail_in == 0;
    out.erase(out.size() - stream_.avail_out);
  }

  // The length of `bytes` when they are deflated alone.
  std::size_t length_of(std::span<const std::uint8_t> bytes, int strategy, std::string& scratch) {
    scratch.clear();
    ok_ = ok_ && deflateReset(&stream_) == Z_OK;
    add(bytes, strategy, Z_FINISH, scratch);
    return scratch.size();
  }

 private:
  z_stream stream_{};
  bool ok_ = false;
};

// Deflates piece by piece, with the strategy that suits each piece. If the bytes are random but
// unevenly distributed, short matches cost more than single bytes, and the search for them costs
// time.
class Deflate {
 public:
  void add(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), kPieceBytes - piece_.size());
      piece_.insert(piece_.end(), bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(count));
      bytes = bytes.subspan(count);
      if (piece_.size() == kPieceBytes) run(Z_NO_FLUSH);
    }
  }
  // Returns an empty string if there was not enough memory.
  std::string finish() {
    run(Z_FINISH);
    return stream_.ok() && probe_.ok() ? std::move(out_) : std::string();
  }

 private:
  void run(int flush) {
    const std::span<const std::uint8_t> piece(piece_);
    const auto begin = piece.first(std::min(piece.size(), kProbeBytes));
    const std::size_t matched = probe_.length_of(begin, Z_DEFAULT_STRATEGY, scratch_);
    const std::size_t unmatched = probe_.length_of(begin, Z_HUFFMAN_ONLY, scratch_);
    stream_.add(piece, matched < unmatched ? Z_DEFAULT_STRATEGY : Z_HUFFMAN_ONLY, flush, out_);
    piece_.clear();
  }

  DeflateStream stream_{Z_DEFAULT_STRATEGY};
  DeflateStream probe_{Z_DEFAULT_STRATEGY};
  std::vector<std::uint8_t> piece_;
  std::string scratch_;
  std::string out_;
};

// Zigzag coding: small differences of either sign become small numbers.
std::uint64_t zigzag(std::uint64_t difference) {
  return (difference << 1U) ^ (0 - (difference >> 63U));
}

std::uint8_t width_of(std::uint64_t highest) {
  if (highest == 0) return 0;
  if (highest <= 0xff) return 1;
  if (highest <= 0xffff) return 2;
  return highest <= 0xffffffff ? 4 : 8;
}

class ColumnPacker {
 public:
  explicit ColumnPacker(std::uint64_t interval_ns)
      : rates_(true, shortest_window_ns(interval_ns)) {}

  // Adds the times and values of a block. `read`: the times at which the values were read. If `spool` is
  // not null, the samples are appended to it.
  void add(std::span<const std::uint64_t> times, std::span<const std::uint64_t> read,
           std::span<const std::uint64_t> values, bool keep_samples, std::string* spool) {
    values_.add(times, values);
    rates_.add(read, values);
    const auto value = values_.end_span().value_or(Thinning::Extremes{});
    const auto rate = rates_.end_span().value_or(Thinning::Extremes{});
    first_.push_back(static_cast<double>(values.front()));
    low_.push_back(value.low);
    high_.push_back(value.high);
    last_.push_back(static_cast<double>(values.back()));
    rate_low_.push_back(static_cast<float>(rate.low));
    rate_high_.push_back(static_cast<float>(rate.high));
    if (keep_samples) {
      add_samples(values, spool);
    } else {
      widths_.push_back(kLeftOut);
    }
  }

  Result<PackedColumn> finish() {
    Deflate outline;
    for (const std::vector<double>* part : {&first_, &low_, &high_, &last_}) {
      outline.add(bytes_of(*part));
    }
    for (const std::vector<float>* part : {&rate_low_, &rate_high_}) outline.add(bytes_of(*part));
    outline.add(widths_);
    PackedColumn column{outline.finish(), {}};
    bool whole = !column.outline.empty();
    for (Deflate& plane : planes_) {
      column.planes.push_back(plane.finish());
      whole = whole && !column.planes.back().empty();
    }
    if (whole) return column;
    return Error{Code::resource_exhausted, "pack a recording's rows: there is not enough memory"};
  }

 private:
  template <class T>
  static std::span<const std::uint8_t> bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
  }

  // The lowest bytes of all differences go into one stream, the next bytes into another, because
  // similar bytes pack best together.
  void add_samples(std::span<const std::uint64_t> values, std::string* spool) {
    std::array<std::uint64_t, kBlock> differences{};
    std::uint64_t highest = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
      differences[i] = zigzag(values[i] - values[i - 1]);
      highest = std::max(highest, differences[i]);
    }
    const std::uint8_t width = width_of(highest);
    widths_.push_back(width);
    std::array<std::uint8_t, kBlock> plane{};
    for (unsigned byte = 0; byte < width; ++byte) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        plane[i] = static_cast<std::uint8_t>(differences[i] >> (8 * byte));
      }
      if (spool != nullptr) {
        spool->append(plane.begin(), plane.begin() + static_cast<std::ptrdiff_t>(values.size()));
      } else {
        if (byte == planes_.size()) planes_.emplace_back();
        planes_[byte].add({plane.data(), values.size()});
      }
    }
  }

  std::vector<double> first_;
  std::vector<double> low_;
  std::vector<double> high_;
  std::vector<double> last_;
  std::vector<float> rate_low_;
  std::vector<float> rate_high_;
  std::vector<std::uint8_t> widths_;
  std::deque<Deflate> planes_;
  Thinning values_{false};
  Thinning rates_;
};

// Gathers rows into blocks of kBlock and packs them.
class RowPacker {
 public:
  // `infos`: of `columns`, but for the time, which is the first of these.
  RowPacker(std::vector<std::size_t> columns, const std::vector<analysis::ColumnInfo>& infos,
            std::uint64_t interval_ns, const PackRequest& request)
      : columns_(std::move(columns)),
        keep_(request.keep),
        spool_(request.spool),
        clocks_(infos),
        gathered_(columns_.size()) {
    for (std::size_t i = 0; i < columns_.size(); ++i) packers_.emplace_back(interval_ns);
  }

  void add(const analysis::RowBlock& rows) {
    for (std::size_t begin = 0; begin < rows.rows();) {
      const std::size_t count = std::min(rows.rows() - begin, kBlock - gathered_.front().size());
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const auto part = rows.column(columns_[i]).subspan(begin, count);
        gathered_[i].insert(gathered_[i].end(), part.begin(), part.end());
      }
      begin += count;
      if (gathered_.front().size() == kBlock) pack();
    }
  }

  Result<PackedRows> finish() {
    if (!gathered_.front().empty()) pack();
    if (spool_error_ != 0) {
      return system_error("keep a recording's samples in a temporary file", spool_error_);
    }
    PackedRows packed;
    packed.samples_left_out = left_out_;
    if (spool_ >= 0) {
      offsets_.push_back(spooled_);
      packed.block_offsets = std::move(offsets_);
    }
    for (ColumnPacker& packer : packers_) {
      Result<PackedColumn> column = packer.finish();
      if (!column) return column.error();
      packed.columns.push_back(std::move(column).value());
    }
    return packed;
  }

 private:
  void pack() {
    const std::vector<std::uint64_t>& times = gathered_.front();
    const bool keep =
        spool_ >= 0 || std::any_of(keep_.begin(), keep_.end(), [&](const auto& range) {
          return range.first <= times.back() && range.second >= times.front();
        });
    left_out_ = left_out_ || !keep;
    clocks_.read(times, [&](std::size_t column) { return std::span(gathered_[column + 1]); });
    std::string block;
    for (std::size_t i = 0; i < packers_.size(); ++i) {
      packers_[i].add(times, clocks_.times(i == 0 ? 0 : clocks_.of(i - 1)), gathered_[i], keep,
                      spool_ >= 0 ? &block : nullptr);
    }
    if (spool_ >= 0) spool(block);
    for (std::vector<std::uint64_t>& column : gathered_) column.clear();
  }

  void spool(const std::string& block) {
    std::size_t written = 0;
    if (spool_error_ == 0) spool_error_ = write_all(spool_, block, &written);
    offsets_.push_back(spooled_);
    spooled_ += block.size();
  }

  std::vector<std::size_t> columns_;  // indices in the file
  std::vector<std::pair<std::uint64_t, std::uint64_t>> keep_;
  int spool_;
  int spool_error_ = 0;
  std::uint64_t spooled_ = 0;
  std::vector<std::uint64_t> offsets_;
  analysis::ReadingClocks clocks_;
  std::vector<std::vector<std::uint64_t>> gathered_;
  std::deque<ColumnPacker> packers_;
  bool left_out_ = false;
};

}  // namespace

Result<PackedRows> pack_rows(const analysis::Summary& summary, const PackRequest& request) {
  std::vector<std::size_t> columns{0};
  std::vector<analysis::ColumnInfo> infos;
  for (std::size_t i = 0; i < summary.columns.size(); ++i) {
    if (summary.columns[i].idle()) continue;
    columns.push_back(i + 1);
    infos.push_back(summary.columns[i].info);
  }
  const auto& metadata = summary.recording.metadata;
  RowPacker packer(std::move(columns), infos, metadata ? metadata->interval_ns : 0, request);
  for (const std::string& path : analysis::files_of(summary.recording)) {
    auto reader = analysis::TsvReader::open(path);
    if (!reader) return reader.error();
    if (reader->columns().size() != summary.columns.size()) {
      return Error{Code::aborted, "read " + path + ": another program rewrote it meanwhile"};
    }
    analysis::RowBlock block = reader->make_block();
    for (;;) {
      const Result<bool> more = reader->next(block);
      if (!more) return more.error();
      if (!*more) break;
      packer.add(block);
    }
  }
  return packer.finish();
}

}  // namespace kymo::report
