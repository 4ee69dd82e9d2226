#include "support/breakable_criu.h"

#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/proc/process.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

constexpr char kSlack[] = "424242";  // the same as in broken_criu.cc

constexpr char kWrapper[] = R"(#!/bin/sh
here=${0%/*}
case "$*" in *swrk*|*--tree*|*restore*) faulty=1;; esac
if [ -n "$faulty" ] && [ -e "$here/fault" ]; then echo $$ > "$here/pid"; . "$here/fault"; fi
exec REAL "$@"
)";

// Whether CRIU has stopped where it should. If kymod's guard traces CRIU, each signal that CRIU gets stops it for an
// instant. So what stops CRIU sets the timer slack first (broken_criu.cc).
bool has_stopped_itself(pid_t criu) {
  const Result<probe::Process> seen = probe::read_process(criu);
  const Result<std::string> slack = read_file("/proc/" + std::to_string(criu) + "/timerslack_ns");
  return seen && seen->stopped() && slack && slack->starts_with(kSlack);
}

}  // namespace

BreakableCriu::BreakableCriu() {
  std::string wrapper = kWrapper;
  wrapper.replace(wrapper.find("REAL"), 4, criu_path());
  path_ = folder_.file("criu", wrapper, 0755);
}

void BreakableCriu::let_do(const std::string& words) const {
  std::filesystem::remove(folder_.path() + "/pid");
  static_cast<void>(folder_.file("fault", words));
}

void BreakableCriu::break_at(const std::string& text, int signal, int after) const {
  let_do("export LD_PRELOAD=" BROKEN_CRIU " KYMO_BREAK_AFTER=" + std::to_string(after) +
         " KYMO_BREAK='" + text + ":" + std::to_string(signal) + "'");
}

void BreakableCriu::stop_at_once(const std::string& parent) const {
  const std::string others = "[ \"$(cat /proc/$PPID/comm)\" != " + parent + " ] || ";
  let_do((parent.empty() ? "" : others) + "{ echo " + kSlack +
         " >/proc/$$/timerslack_ns; kill -STOP $$; }");
}

void BreakableCriu::mend() const {
  std::filesystem::remove(folder_.path() + "/fault");
}

pid_t BreakableCriu::stopped() const {
  return stopped_unless([] { return false; });
}

pid_t BreakableCriu::stopped_unless(const std::function<bool()>& over) const {
  pid_t criu = 0;
  const auto has_stopped = [&] {
    const Result<std::string> said = read_file(folder_.path() + "/pid");
    criu = said ? std::atoi(said->c_str()) : 0;
    return criu != 0 && has_stopped_itself(criu);
  };
  bool stopped = false;
  eventually([&] { return (stopped = has_stopped()) || over(); });
  return stopped ? criu : 0;
}

}  // namespace kymo::test
