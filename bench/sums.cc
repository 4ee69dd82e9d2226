// Sums every column of a recording, and prints one sum per line, that of the time first.
// bench/read_speed.py compares it with other programs that do the same. `kymo report` reads
// recordings in the same way.
//
//   bench_sums RECORDING [--threads N]     0: one for each core
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "lens/analysis/row_pieces.h"

namespace {

using kymo::analysis::ColumnSum;

int run(const std::string& path, unsigned threads) {
  auto reader = kymo::analysis::TsvReader::open(path);
  if (!reader) {
    std::fprintf(stderr, "bench_sums: %s\n", reader.error().message.c_str());
    return 1;
  }
  std::vector<ColumnSum> all(reader->columns().size() + 1);
  const auto read = take_rows(*reader, threads, [&all](const kymo::analysis::RowPiece& piece) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i].add(piece.sums[i]);
  });
  if (!read) {
    std::fprintf(stderr, "bench_sums: %s\n", read.error().message.c_str());
    return 1;
  }
  for (const ColumnSum& column : all) std::printf("%.17g\n", column.total());
  return 0;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what cannot be parsed ends the benchmark
int main(int argc, char** argv) {
  std::string path;
  unsigned threads = 1;
  CLI::App app("Print the sum of every column");
  app.add_option("RECORDING", path)->required();
  app.add_option("--threads", threads, "number of threads (0: one for each core)");
  CLI11_PARSE(app, argc, argv);
  return run(path, threads);
}
