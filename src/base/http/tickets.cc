#include "base/http/tickets.h"

#include "base/http/token_file.h"

namespace kymo::http {
namespace {

constexpr std::chrono::seconds kLife{60};

}  // namespace

std::string Tickets::issue() {
  Result<std::string> ticket = make_token();
  if (!ticket) return {};
  const std::lock_guard lock(mutex_);
  std::erase_if(until_, [](const auto& one) { return one.second < Clock::now(); });
  until_[*ticket] = Clock::now() + kLife;
  return std::move(ticket).value();
}

bool Tickets::take(const std::string& ticket) {
  const std::lock_guard lock(mutex_);
  const auto found = until_.find(ticket);
  if (found == until_.end()) return false;
  const bool valid = found->second >= Clock::now();
  until_.erase(found);
  return valid;
}

}  // namespace kymo::http
