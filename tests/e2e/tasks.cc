// Programs with many tasks, or with one that is hard to stop. Each prints a line when it is ready.
//
//   kymo-tasks children N   has N child processes with little memory
//   kymo-tasks sleeper      is nearly always in uninterruptible sleep (state D), because it waits for a child of vfork(2).
//                           It prints a line each time it falls asleep.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

void say(std::string_view line) {
  static_cast<void>(!write(STDOUT_FILENO, line.data(), line.size()));
}

[[noreturn]] void children(int count) {
  for (int i = 0; i < count; ++i) {
    if (fork() == 0) break;
    if (i + 1 == count) say("ready\n");
  }
  for (;;) pause();
}

[[noreturn]] void sleeper() {
  constexpr unsigned kSeconds = 3;
  for (;;) {
    say("asleep\n");
    const pid_t child =
        vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): what is tested
    if (child == 0) {
      sleep(kSeconds);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) children(std::atoi(argv[2]));  // NOLINT(cert-err34-c): a test's own number
  sleeper();
}
