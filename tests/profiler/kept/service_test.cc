#include "profiler/kept/service.h"

#include <gtest/gtest.h>

namespace kymo::profiles {
namespace {

TEST(ServiceTest, TheTextOfAServiceIsReadBack) {
  for (const char* const text : {"job:web", "container:0123456789ab", "process:a:b c"}) {
    const std::optional<Service> service = service_in(text);
    ASSERT_TRUE(service) << text;
    EXPECT_EQ(text_of(*service), text);
  }
  EXPECT_EQ(service_in("job:web")->kind, Service::Kind::job);
  EXPECT_EQ(service_in("process:a:b c")->name, "a:b c");
}

TEST(ServiceTest, OtherTextsAreNoService) {
  for (const char* const text : {"", "web", "job:", ":web", "jobs:web", "cgroup:/x"}) {
    EXPECT_FALSE(service_in(text)) << text;
  }
}

TEST(ServiceTest, WorkersOfTheKernelAreOneService) {
  EXPECT_EQ(service_of_process("kworker/u4:2-events").name, "kworker");
  EXPECT_EQ(service_of_process("kworkerish").name, "kworkerish");
  EXPECT_EQ(service_of_process("").name, "[unknown]");
}

}  // namespace
}  // namespace kymo::profiles
