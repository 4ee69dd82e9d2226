#include "base/proc/memory_to_dump.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kymo::probe {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kMib = 32;

// Starts a process with kMib MiB of memory, which waits to be killed. The kernel fills the memory,
// because writes of the process would also fill the shadow memory of a sanitizer.
pid_t start_with(int kind_of_mapping) {
  int ready[2];
  if (pipe(ready) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    const void* memory = mmap(nullptr, kMib * kMebibyte, PROT_READ | PROT_WRITE,
                              kind_of_mapping | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) _exit(1);
    static_cast<void>(!::write(ready[1], "x", 1));
    for (;;) pause();
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return pid;
}

void end(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(MemoryToDumpTest, CountsWhatIsWrittenPrivateOrShared) {
  for (const int kind : {MAP_PRIVATE, MAP_SHARED}) {
    // A new child has the same memory as this process.
    const std::uint64_t before = memory_to_dump(getpid());
    const pid_t pid = start_with(kind);
    const std::uint64_t bytes = memory_to_dump(pid);
    EXPECT_GE(bytes, kMib * kMebibyte);
    EXPECT_LE(bytes, kMib * kMebibyte + before + kMebibyte);
    EXPECT_GE(memory_to_dump(getpid()), bytes);  // that of the whole tree
    end(pid);
  }
  EXPECT_EQ(memory_to_dump(1 << 22), 0U);  // a pid that does not exist
}

}  // namespace
}  // namespace kymo::probe
