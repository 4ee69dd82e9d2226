#include "runtime/aftermath.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "base/file.h"
#include "probe/process.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

// Runs what CRIU's parasite would in a mapping of its name: spins for some hundredths of a second,
// and comes to a trap. A second thread waits meanwhile.
[[noreturn]] void run_into_a_trap() {
  std::thread([] {
    for (;;) ::pause();
  }).detach();
  // mov rcx, 100'000'000; again: dec rcx; jnz again; int3
  constexpr std::array<unsigned char, 14> kCode{0x48, 0xc7, 0xc1, 0x00, 0xe1, 0xf5, 0x05,
                                                0x48, 0xff, 0xc9, 0x75, 0xfb, 0xcc, 0xcc};
  const int fd = ::memfd_create("CRIUMFD", 0);
  if (fd < 0 || ::ftruncate(fd, 4096) != 0) ::_exit(1);
  void* const code = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
  if (code == MAP_FAILED) ::_exit(1);
  std::memcpy(code, kCode.data(), kCode.size());
  void (*run)() = nullptr;
  std::memcpy(&run, &code, sizeof run);
  ::signal(SIGTRAP, SIG_DFL);
  run();
  ::_exit(1);
}

// "The process runs on, but of its 41 processes 41 ended", the first among them: it had been looked
// at before it came to the end of CRIU's code.
TEST(AftermathTest, AProcessThatEndsInCriusTrapIsNotSaidToRunOn) {
  const test::TemporaryDirectory folder;
  const pid_t child = ::fork();
  if (child == 0) run_into_a_trap();
  ASSERT_TRUE(test::eventually([&] {
    const auto maps = read_file("/proc/" + std::to_string(child) + "/maps");
    return maps && maps->find("CRIUMFD") != std::string::npos;
  }));
  DumpSpec spec;
  spec.images_dir = folder.folder("images");
  DumpTarget before;
  before.process = probe::read_process(child).value();
  before.tree = {{child, before.process.start_ticks}};
  const Error error = clean_up_failed_dump(spec, before, {Code::internal, "criu failed"});
  int status = 0;
  // Were one of its threads still traced, nobody could wait for its end.
  const bool ended = test::eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; });
  EXPECT_TRUE(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP) << error.message;
  EXPECT_TRUE(
      error.message.starts_with("criu failed; and process " + std::to_string(child) + " is gone"))
      << error.message;
  if (!ended) ::kill(child, SIGKILL);
}

}  // namespace
}  // namespace kymo::runtime
