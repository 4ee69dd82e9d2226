// Writes a store of stack profiles for the tests of kymo profiles: make_profiles FILE.
// Each minute from 2025-03-04 03:00 to 03:09 UTC has these samples: of the job "web", 60 in read() and 20 in
// write(), both called by main(); of the processes "sh", 20 in main(); of a container that also has the name
// "web", one.
#include <sys/stat.h>

#include <cstdio>

#include "profiler/kept/sqlite_store.h"
#include "some_minute.h"

int main(int argc, char** argv) {
  using kymo::profiles::SomeMinute;
  if (argc != 2) return 2;
  ::umask(0077);  // as kymod sets it
  const auto store = kymo::profiles::SqliteStore::open(argv[1]);
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    return 1;
  }
  constexpr std::int64_t kFirst = 1'741'057'200 / 60;
  for (std::int64_t minute = kFirst; minute < kFirst + 10; ++minute) {
    const auto added = (*store)->add(SomeMinute(minute)
                                         .stack("job:web", {"read", "main"}, 60)
                                         .stack("job:web", {"write", "main"}, 20)
                                         .stack("process:sh", {"main"}, 20)
                                         .stack("container:two", {"main"}, 1)
                                         .stack("process:two", {"main"}, 1));
    if (!added) return 1;
  }
  return 0;
}
