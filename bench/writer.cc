// Measures how fast rows become TSV: the formatter against a simple std::to_chars loop, and the
// whole writer, to a file on tmpfs and on a disk, plain and compressed by zstd, against write(2) of
// text that is already formatted. There are two data sets of 16 columns with 6 to 12 digits: all
// change in every row, or a quarter changes. Before the measurement, the text is compared with that
// of the simple loop.
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text_file.h"
#include "recorder/metrics/metric_rules.h"
#include "recorder/sampling/files/recording_files.h"
#include "recorder/sampling/files/tsv_format.h"

namespace {

constexpr std::size_t kColumns = 16;
constexpr std::size_t kStride = kColumns + 1;
constexpr std::size_t kRows = 1000;

// Counters of a busy program: column c starts at about 10^(6 + c mod 7), and grows.
std::vector<std::uint64_t> make_rows(std::size_t changing) {
  std::mt19937_64 random(42);
  std::vector<std::uint64_t> words(kRows * kStride);
  std::vector<std::uint64_t> value(kColumns);
  for (std::size_t c = 0; c < kColumns; ++c) {
    std::uint64_t magnitude = 100'000;
    for (std::size_t i = 0; i < c % 7; ++i) {
      magnitude *= 10;
    }
    value[c] = magnitude + random() % (8 * magnitude);
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    words[r * kStride] = 1'000'000'000 + r * 1000 + random() % 100;
    for (std::size_t c = 0; c < kColumns; ++c) {
      if (c % kColumns < changing) {
        value[c] += 1 + random() % 5000;
      }
      words[r * kStride + 1 + c] = value[c];
    }
  }
  return words;
}

std::vector<kymo::Column> columns() {
  std::vector<kymo::Column> columns;
  for (std::size_t c = 0; c < kColumns; ++c) {
    columns.push_back(kymo::columns_of({.name = "c" + std::to_string(c)}).front());
  }
  return columns;
}

std::size_t simple_loop(const std::vector<std::uint64_t>& words, std::vector<char>& out) {
  char* at = out.data();
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kStride; ++c) {
      at = std::to_chars(at, at + kymo::kMaxNumberChars, words[r * kStride + c]).ptr;
      *at++ = c + 1 == kStride ? '\n' : '\t';
    }
  }
  return static_cast<std::size_t>(at - out.data());
}

void to_chars_loop(benchmark::State& state) {
  const auto words = make_rows(static_cast<std::size_t>(state.range(0)));
  std::vector<char> out(kRows * kStride * kymo::kMaxNumberChars);
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes = simple_loop(words, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void formatter(benchmark::State& state) {
  const auto words = make_rows(static_cast<std::size_t>(state.range(0)));
  kymo::TsvFormatter formatter(kStride, kRows);
  const kymo::Rows rows{words.data(), kRows, kStride};
  std::vector<char> expected(kRows * kStride * kymo::kMaxNumberChars);
  const std::size_t bytes = simple_loop(words, expected);
  if (formatter.format(rows, 0) != std::string_view(expected.data(), bytes)) {
    state.SkipWithError("the text is wrong");
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(formatter.format(rows, 0).data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

// Whether the file has the rows once for each of `appends`.
bool holds(const std::string& path, const std::vector<std::uint64_t>& words,
           std::uint64_t appends) {
  std::vector<char> expected(kRows * kStride * kymo::kMaxNumberChars);
  const std::size_t size = simple_loop(words, expected);
  kymo::TextFile file = kymo::TextFile::open(path).value();
  std::vector<char> text(kymo::tsv_header(columns()).size());
  if (file.read(text.data(), text.size()).value() != text.size()) {
    return false;
  }
  text.resize(size);
  for (std::uint64_t i = 0; i < appends; ++i) {
    if (file.read(text.data(), size).value() != size ||
        std::memcmp(text.data(), expected.data(), size) != 0) {
      return false;
    }
  }
  return file.read(text.data(), 1).value() == 0 && file.damage().empty();
}

// Formats, compresses if the ending of the file asks for it, and writes with write(2). The file is
// started again before it becomes large. Bytes count the text. `ratio` is the share of them that is
// on the disk.
void write_files(benchmark::State& state, std::string folder, const char* ending) {
  constexpr std::uint64_t kMaxSize = 512U << 20U;
  const auto words = make_rows(static_cast<std::size_t>(state.range(0)));
  std::vector<char> text(kRows * kStride * kymo::kMaxNumberChars);
  const std::size_t text_bytes = simple_loop(words, text);
  kymo::RecordingInfo info;
  info.columns = columns();
  if (::mkdtemp(folder.data()) == nullptr) {
    state.SkipWithError("no room for the file");
    return;
  }
  int file = 0;
  std::uint64_t in_file = 0;
  const auto begin = [&] {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    in_file = 0;
    return kymo::RecordingFiles::create(folder + "/" + std::to_string(file++) + ending, info, {})
        .value();
  };
  kymo::RecordingFiles files = begin();
  for (auto _ : state) {
    if (!files.append({words.data(), kRows, kStride}, 0)) {
      state.SkipWithError("a write failed");
      break;
    }
    ++in_file;
    if (files.bytes() > kMaxSize) {
      state.PauseTiming();
      files = begin();
      state.ResumeTiming();
    }
  }
  if (!holds(files.path(), words, in_file)) {
    state.SkipWithError("the file does not hold the rows");
  }
  state.counters["ratio"] =
      static_cast<double>(files.bytes()) / static_cast<double>(in_file * text_bytes);
  std::filesystem::remove_all(folder);
  state.SetBytesProcessed(static_cast<std::int64_t>(text_bytes) * state.iterations());
}

// Writes the same bytes only with write(2), in pieces of as many rows.
void write_ready_text(benchmark::State& state, std::string path) {
  constexpr std::size_t kMaxSize = 512U << 20U;
  const auto words = make_rows(static_cast<std::size_t>(state.range(0)));
  std::vector<char> text(kRows * kStride * kymo::kMaxNumberChars);
  const std::size_t size = simple_loop(words, text);
  const kymo::FileDescriptor file(::mkstemp(path.data()));
  ::unlink(path.data());
  std::size_t written = 0;
  for (auto _ : state) {
    if (::write(file.get(), text.data(), size) != static_cast<ssize_t>(size)) {
      state.SkipWithError("a write failed");
      break;
    }
    written += size;
    if (written > kMaxSize) {
      state.PauseTiming();
      if (::ftruncate(file.get(), 0) != 0 || ::lseek(file.get(), 0, SEEK_SET) != 0) {
        state.SkipWithError("the file cannot be begun anew");
        break;
      }
      written = 0;
      state.ResumeTiming();
    }
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(size) * state.iterations());
}

void text_to_tmpfs(benchmark::State& state) {
  write_ready_text(state, "/dev/shm/kymo-bench-XXXXXX");
}
void text_to_disk(benchmark::State& state) {
  write_ready_text(state, "kymo-bench-XXXXXX");
}

void writer_to_tmpfs(benchmark::State& state) {
  write_files(state, "/dev/shm/kymo-bench-XXXXXX", ".tsv");
}
void zstd_writer_to_tmpfs(benchmark::State& state) {
  write_files(state, "/dev/shm/kymo-bench-XXXXXX", ".tsv.zst");
}
// Writes to the folder from which the benchmark is started, which should be on a disk.
void writer_to_disk(benchmark::State& state) {
  write_files(state, "kymo-bench-XXXXXX", ".tsv");
}
void zstd_writer_to_disk(benchmark::State& state) {
  write_files(state, "kymo-bench-XXXXXX", ".tsv.zst");
}

BENCHMARK(to_chars_loop)->ArgName("changing")->Arg(16)->Arg(4);
BENCHMARK(formatter)->ArgName("changing")->Arg(16)->Arg(4);
BENCHMARK(text_to_tmpfs)->ArgName("changing")->Arg(16)->Arg(4);
BENCHMARK(text_to_disk)->ArgName("changing")->Arg(16)->Arg(4)->UseRealTime();
BENCHMARK(writer_to_tmpfs)->ArgName("changing")->Arg(16)->Arg(4);
BENCHMARK(zstd_writer_to_tmpfs)->ArgName("changing")->Arg(16)->Arg(4);
BENCHMARK(writer_to_disk)->ArgName("changing")->Arg(16)->Arg(4)->UseRealTime();
BENCHMARK(zstd_writer_to_disk)->ArgName("changing")->Arg(16)->Arg(4)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
