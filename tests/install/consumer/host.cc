// Loads libkymo through a plugin by dlopen while threads are already running, and counts.
// Afterwards the plugin, and only the plugin, must be unloaded, so that another build of it could
// be loaded.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  int failed = 1;
  // This thread was started before the library was loaded, so its thread-local block already
  // exists.
  std::thread([&] {
    void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void* symbol = plugin != nullptr ? dlsym(plugin, "count_to") : nullptr;
    if (symbol == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return;
    }
    constexpr std::uint64_t kCount = 50'000;
    const auto counted = reinterpret_cast<std::uint64_t (*)(std::uint64_t)>(symbol)(kCount);
    std::printf("counted %lu\n", counted);
    failed = counted == 2 * kCount ? 0 : 1;
    dlclose(plugin);
    if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != nullptr) {
      std::fprintf(stderr, "dlclose left %s loaded\n", argv[1]);
      failed = 1;
    }
  }).join();
  return failed;
}
