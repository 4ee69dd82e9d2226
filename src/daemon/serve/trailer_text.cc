#include "daemon/serve/trailer_text.h"

#include <algorithm>

namespace kymo::daemon {
namespace {

constexpr std::string_view kCut = " ... (cut: kymod's log has all of it)";

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

std::string message_to_send(std::string text) {
  if (sent_bytes(text) <= kMaxMessageBytes) return text;
  std::size_t end = 0;
  for (std::size_t sent = kCut.size(); sent <= kMaxMessageBytes && end < text.size(); ++end) {
    sent += sent_bytes_of(text[end]);
  }
  return cut_text(text, end - 1).append(kCut);
}

}  // namespace kymo::daemon
