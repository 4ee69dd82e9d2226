#include "daemon/request/kernel_view.h"

#include <spdlog/spdlog.h>

#include <system_error>

namespace kymo::daemon {

void KernelView::start(bool pages) {
  const auto load = [pages] {
    Counts counts = inside::BpfCounts::load(pages);
    if (!counts) {
      spdlog::info(
          "--inside: dumps and restores have no columns of system calls and no exact times: {}",
          counts.error().message);
    }
    return counts;
  };
  try {
    loaded_ = std::async(std::launch::async, load);
  } catch (const std::system_error&) {  // there is no thread
    loaded_ = std::async(std::launch::deferred, load);
  }
}

KernelView::Counts KernelView::get() const {
  if (!loaded_.valid()) return Error{Code::failed_precondition, "BPF: it was not loaded"};
  return loaded_.get();
}

}  // namespace kymo::daemon
