// page_profiles FILE END: writes stack profiles of the three hours before the minute END, for the page. The numbers
// are always the same. In each minute, "job:web" has 50 samples in parse() and 30 in send(), but in the last hour
// 150 in parse(). "process:sh" has 20. The ten minutes from END - 40 have no samples. "job:web" also has waits.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "profiler/kept/some_minute.h"
#include "profiler/kept/sqlite_store.h"

namespace {

using kymo::profiles::Minute;
using kymo::profiles::SomeMinute;

constexpr const char* kHostile = "<img src=x onerror=document.title='taken'>";
constexpr std::int64_t kMinutes = 180;
constexpr std::int64_t kHour = 60;
constexpr std::int64_t kGapBegin = 40;  // in minutes before the end
constexpr std::int64_t kGapEnd = 30;
constexpr int kFew = 12;

Minute cpu_minute(std::int64_t minute, std::int64_t before_end) {
  const std::uint64_t parsed = before_end <= kHour ? 150 : 50;
  SomeMinute made(minute);
  made.stack("job:web", {"json::parse(char const*)", "http::handle(Request&)", "main"}, parsed)
      .stack("job:web", {"send", "http::reply(Request&)", "http::handle(Request&)", "main"}, 30)
      .stack("process:sh", {"main"}, 20)
      .stack(std::string("process:") + kHostile, {kHostile, "main"}, 5);
  for (int i = 1; i <= kFew; ++i) {
    made.stack("container:00000000000" + std::to_string(i % 10) + "-" + std::to_string(i),
               {"work", "main"}, 1);
  }
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto store = kymo::profiles::SqliteStore::open(argv[1]);
  const std::int64_t end = std::atoll(argv[2]);
  for (std::int64_t before_end = kMinutes; before_end > 0; --before_end) {
    if (before_end <= kGapBegin && before_end > kGapEnd) continue;
    const std::int64_t minute = end - before_end;
    const SomeMinute waits = SomeMinute(minute, kymo::profiles::Type::off_cpu)
                                 .stack("job:web", {"epoll_wait", "main"}, 400);
    if (!store || !(*store)->add(cpu_minute(minute, before_end)) || !(*store)->add(waits)) {
      std::fprintf(stderr, "cannot write %s\n", argv[1]);
      return 1;
    }
  }
  return 0;
}
