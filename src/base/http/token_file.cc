#include "base/http/token_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "base/file.h"

namespace kymo::http {
namespace {

constexpr std::size_t kBytes = 32;
constexpr std::size_t kMinDigits = 16;
constexpr std::size_t kMaxDigits = 256;
constexpr std::size_t kMaxBytes = 4096;

Result<std::string> make_file(const std::string& path) {
  Result<std::string> token = make_token();
  if (!token) return token;
  // Write another file and rename it: a program that reads the token must not see a partial file.
  const std::string partial = path + ".new";
  const Result<FileDescriptor> fd = create_anew(partial, 0600);
  if (!fd) return system_error("make the token's file " + path, fd.error().errno_value);
  std::size_t written = 0;
  if (const int cause = write_all(fd->get(), *token + "\n", &written); cause != 0) {
    return system_error("write the token's file " + path, cause);
  }
  if (rename(partial.c_str(), path.c_str()) != 0) {
    return system_error("make the token's file " + path, errno);
  }
  return token;
}

// Checks the type, owner and mode of the file. Returns nothing if it may hold the token.
std::optional<std::string> refusal_of(const std::string& path, const struct stat& file) {
  if (!S_ISREG(file.st_mode)) {
    return "the token's file " + path + " is not a regular file: name another";
  }
  if (file.st_uid != 0 && file.st_uid != geteuid()) {
    return "the token's file " + path + " belongs to uid " + std::to_string(file.st_uid) +
           ", who may know the token: remove the file, and kymod makes a new one; or name another "
           "file";
  }
  const unsigned mode = file.st_mode & 0777U;
  if (mode == 0600 || mode == 0640) return std::nullopt;
  std::array<char, 8> octal{};
  std::snprintf(octal.data(), octal.size(), "%04o", mode);
  return "the token's file " + path + " has mode " + octal.data() +
         ", so other users may know the token: remove the file, and kymod makes one "
         "with a new token; or write a new token into it and give it mode 0600 or 0640";
}

Result<std::string> read_token(int fd, const std::string& path) {
  std::string text;
  std::array<char, 1024> piece{};
  while (text.size() < kMaxBytes) {
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read the token's file " + path, errno);
    if (got == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  const bool plain =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  if (plain && text.size() >= kMinDigits && text.size() <= kMaxDigits) return text;
  return Error{Code::data_loss, "the token's file " + path +
                                    " has no valid token in it (16 to 256 letters and digits): "
                                    "remove the file, and kymod makes "
                                    "a new one"};
}

}  // namespace

Result<std::string> make_token() {
  std::array<unsigned char, kBytes> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return system_error("make a token", errno);
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4U];
    token += kDigits[byte & 15U];
  }
  return token;
}

Result<std::string> load_token(const std::string& path) {
  // Open first, and check the open file: the name may lead to another file a moment later.
  // O_NONBLOCK: opening a FIFO must not wait.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | kOpenForeign));
  if (!file.valid()) {
    const int cause = errno;
    if (cause == ENOENT) return make_file(path);
    if (cause == ELOOP) {
      return Error{Code::permission_denied,
                   "the token's file " + path + " is a link: name the file itself"};
    }
    return system_error("open the token's file " + path, cause);
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0) {
    return system_error("look at the token's file " + path, errno);
  }
  if (const auto refusal = refusal_of(path, info); refusal) {
    return Error{Code::permission_denied, *refusal};
  }
  return read_token(file.get(), path);
}

}  // namespace kymo::http
