#include "breakable_criu.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "probe/process.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

constexpr char kWrapper[] = R"(#!/bin/sh
here=${0%/*}
case "$*" in *swrk*|*dump*--tree*|*restore*) faulty=1;; esac
if [ -n "$faulty" ] && [ -e "$here/fault" ]; then echo $$ > "$here/pid"; . "$here/fault"; fi
exec REAL "$@"
)";

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

void BreakableCriu::break_at(const std::string& text, int signal) const {
  let_do("export LD_PRELOAD=" BROKEN_CRIU " KYMO_BREAK='" + text + ":" + std::to_string(signal) +
         "'");
}

void BreakableCriu::mend() const {
  std::filesystem::remove(folder_.path() + "/fault");
}

pid_t BreakableCriu::stopped() const {
  pid_t criu = 0;
  const bool stopped = eventually([&] {
    criu = std::atoi(read_file(folder_.path() + "/pid").c_str());
    const Result<probe::Process> seen = probe::read_process(criu);
    return criu != 0 && seen && seen->state == 'T';
  });
  return stopped ? criu : 0;
}

void BreakableCriu::kill_kymod_when_pages_are_dumped(Kymod& kymod,
                                                     const std::vector<std::string>& dump) const {
  break_at("Dumping pages (type", SIGSTOP);
  std::thread client([&] { static_cast<void>(kymod.kymo(dump)); });
  const pid_t criu = stopped();
  EXPECT_NE(criu, 0) << kymod.log();
  mend();
  EXPECT_EQ(kymod.stop(SIGKILL), -1);
  if (criu != 0) kill(criu, SIGCONT);
  client.join();
}

bool waits_for_disk(pid_t process) {
  const std::vector<pid_t> threads = probe::threads_of(process);
  return std::any_of(threads.begin(), threads.end(), [](pid_t thread) {
    return read_file("/proc/" + std::to_string(thread) + "/wchan") == "request_wait_answer";
  });
}

}  // namespace kymo::test
