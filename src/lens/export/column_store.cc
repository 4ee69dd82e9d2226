#include "lens/export/column_store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kymo::exporting {
namespace {

constexpr std::size_t kPieces = 64 * 1024;  // values, of all columns that are read together

// Some file systems do not support O_TMPFILE. There, a file is created and unlinked.
FileDescriptor nameless_file(const std::string& folder) {
  FileDescriptor fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid() || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  std::string name = folder + "/.kymo-XXXXXX";
  fd = FileDescriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (fd.valid()) ::unlink(name.c_str());
  return fd;
}

}  // namespace

Result<FileDescriptor> create_nameless_file(const std::string& folder) {
  FileDescriptor fd = nameless_file(folder);
  if (!fd.valid()) return system_error("cannot create a temporary file in " + folder, errno);
  return fd;
}

template <class Call, class Bytes>
Result<void> ColumnStore::transfer(Call call, const char* verb, Bytes* bytes, std::size_t left,
                                   std::size_t first_value) const {
  auto offset = static_cast<off_t>(first_value * sizeof(std::uint64_t));
  while (left > 0) {
    const ssize_t n = call(fd_.get(), bytes, left, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return system_error(std::string("cannot ") + verb + " a temporary file", n < 0 ? errno : EIO);
    }
    bytes += n;
    left -= static_cast<std::size_t>(n);
    offset += n;
  }
  return {};
}

Result<void> ColumnStore::write(std::size_t column, std::span<const std::uint64_t> values) const {
  return transfer(::pwrite, "write", reinterpret_cast<const char*>(values.data()),
                  values.size_bytes(), column * room_ + rows_);
}

Result<void> ColumnStore::add(const analysis::RowBlock& block, std::span<const std::size_t> rows) {
  for (std::size_t column = 0; column < columns_; ++column) {
    values_.clear();
    for (const std::size_t row : rows) values_.push_back(block.column(column)[row]);
    if (auto written = write(column, values_); !written) return written;
  }
  rows_ += rows.size();
  return {};
}

Result<void> ColumnStore::add(std::span<const std::uint64_t> row) {
  for (std::size_t column = 0; column < columns_; ++column) {
    if (auto written = write(column, row.subspan(column, 1)); !written) return written;
  }
  ++rows_;
  return {};
}

Result<void> ColumnStore::read_piece(std::size_t column, std::uint64_t row,
                                     std::span<std::uint64_t> values) const {
  return transfer(::pread, "read", reinterpret_cast<char*>(values.data()), values.size_bytes(),
                  column * room_ + row);
}

Result<void> ColumnStore::read(
    std::span<const std::size_t> columns,
    const std::function<void(Values, std::span<const Values>)>& take) const {
  const std::size_t rows = std::max<std::size_t>(kPieces / (columns.size() + 1), 1);
  std::vector<std::vector<std::uint64_t>> buffers(columns.size() + 1,
                                                  std::vector<std::uint64_t>(rows));
  for (std::uint64_t row = 0; row < rows_; row += rows) {
    const std::size_t count = std::min<std::uint64_t>(rows, rows_ - row);
    std::vector<Values> values;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::span some(buffers[i].data(), count);
      if (auto read = read_piece(i == 0 ? 0 : columns[i - 1], row, some); !read) return read;
      values.emplace_back(some);
    }
    take(values.front(), std::span(values).subspan(1));
  }
  return {};
}

}  // namespace kymo::exporting
