// Compares our decoding of CRIU's images with crit, CRIU's own decoder, on checkpoints of real
// processes.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

using nlohmann::json;

// Where pycriu is: KYMO_TEST_PYCRIU, or else where scripts/setup puts it.
std::string pycriu() {
  const char* given = std::getenv("KYMO_TEST_PYCRIU");
  return given != nullptr ? given : KYMO_SOURCE_DIR "/.deps/crit/usr/lib/python3/dist-packages";
}

Outcome compare(const Kymod& kymod, const std::string& checkpoint) {
  const std::string ours = kymod.path("stats.json");
  return run({"sh", "-c",
              KYMO_PROGRAM " stats --json " + checkpoint + " > " + ours + " && /usr/bin/python3 " +
                  CRIT_SOURCE "/compare.py " + pycriu() + " " + checkpoint + "/images " +
                  checkpoint + "/work < " + ours});
}

TEST(CritTest, CritAndWeSayTheSameOfACheckpoint) {
  KYMO_NEEDS_BOTH_CRIUS();
  // The crit of Debian 12 can read only images of CRIU before 4.2. CRIU 4.2 counts pages in another
  // field.
  Kymod kymod({"--criu", criu_fallback_path()});
  kymod.start();
  static_cast<void>(kymod.churn(32, "churn"));
  // A shell that waits for another program, so there is more than one process.
  static_cast<void>(kymod.kymo_json({"run", "process", "--name", "tree", "--", "/bin/sh", "-c",
                                     "sleep 1000 & sleep 1001; true"}));
  for (const char* job : {"churn", "tree"}) {
    static_cast<void>(kymod.kymo_json({"dump", "process", job, "--dir", kymod.path(job)}));
    const Outcome said = compare(kymod, kymod.path(job));
    if (said.exit_code == 77) GTEST_SKIP() << said.out << "scripts/setup takes it from Debian 12";
    EXPECT_EQ(said.exit_code, 0) << said.out << said.err;
    EXPECT_NE(said.out.find("statistics of dump\n"), std::string::npos) << said.out;
  }
  static_cast<void>(kymod.kymo_json({"restore", "process", kymod.path("churn")}));
  const Outcome said = compare(kymod, kymod.path("churn"));
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err;
  EXPECT_NE(said.out.find("statistics of dump and restore\n"), std::string::npos) << said.out;
}

}  // namespace
}  // namespace kymo::test
