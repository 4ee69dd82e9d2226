#include "daemon/status.h"

#include <algorithm>

namespace kymo::daemon {
namespace {

constexpr std::string_view kCut = " ... (cut: kymod's log has all of it)";
constexpr char kCodeField = 0x08;  // field 1, a varint

std::size_t sent_bytes_of(char c) {
  return c >= ' ' && c <= '~' && c != '%' ? 1 : 3;
}

}  // namespace

std::size_t sent_bytes(std::string_view message) {
  std::size_t bytes = 0;
  for (const char c : message) bytes += sent_bytes_of(c);
  return bytes;
}

std::string cut_text(const std::string& text, std::size_t most) {
  std::size_t end = std::min(text.size(), most);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return text.substr(0, end);
}

grpc::Status status_of(const Error& error) {
  std::string message = error.message;
  if (sent_bytes(message) > kMostMessageBytes) {
    std::size_t end = 0;
    for (std::size_t sent = kCut.size(); sent <= kMostMessageBytes && end < message.size(); ++end) {
      sent += sent_bytes_of(message[end]);
    }
    message = cut_text(message, end - 1).append(kCut);
  }
  const std::string details{kCodeField, static_cast<char>(error.code)};
  return {static_cast<grpc::StatusCode>(error.code), message, details};
}

}  // namespace kymo::daemon
