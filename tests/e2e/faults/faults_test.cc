// Plays the table of faults (table.h), and compares it with docs/faults.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "e2e/faults/scene.h"
#include "support/real_criu.h"
#include "support/says.h"

namespace kymo::test {
namespace {

struct Case {
  Row row;
  Way way;
  Point point;
  [[nodiscard]] bool of_container() const {
    return way.kind != Kind::process && way.kind != Kind::connected;
  }
  [[nodiscard]] std::string name() const {
    const std::string request = row.request == Request::dump ? "Dump" : "Restore";
    return request + "Of" + way.name + point.name + row.trouble.name;
  }
};

// Lets gtest print the name.
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name();
}

std::vector<Row> all_rows() {
  return rows_of(
      {rows_of_dumps(), rows_of_restores(), rows_of_changed_images(), rows_of_requests_beside()});
}

// CMakeLists.txt runs the four groups at different times.
std::vector<Case> cases(bool of_containers, bool slow) {
  std::vector<Case> found;
  for (const Row& row : all_rows()) {
    for (const Way& way : row.ways) {
      for (const Point& point : row.points) {
        const Case one{row, way, point};
        if (one.of_container() == of_containers && (way.slow || point.slow) == slow)
          found.push_back(one);
      }
    }
  }
  return found;
}

class FaultTest : public testing::TestWithParam<Case> {};

TEST_P(FaultTest, ThePromiseIsKept) {
  KYMO_NEEDS_CRIU();
  if (!why_not(GetParam().way.kind).empty()) GTEST_SKIP() << why_not(GetParam().way.kind);
  SCOPED_TRACE("docs/faults.md: " + GetParam().row.keeps);
  Scene(GetParam().row, GetParam().way, GetParam().point).play();
}

std::string name_of(const testing::TestParamInfo<Case>& one) {
  return one.param.name();
}

INSTANTIATE_TEST_SUITE_P(Processes, FaultTest, testing::ValuesIn(cases(false, false)), name_of);
INSTANTIATE_TEST_SUITE_P(Containers, FaultTest, testing::ValuesIn(cases(true, false)), name_of);
INSTANTIATE_TEST_SUITE_P(SlowProcesses, FaultTest, testing::ValuesIn(cases(false, true)), name_of);
INSTANTIATE_TEST_SUITE_P(SlowContainers, FaultTest, testing::ValuesIn(cases(true, true)), name_of);

TEST(FaultTableTest, EachRowKeepsWordsOfTheDocument) {
  const auto in_one_line = [](const std::string& text) {
    return std::regex_replace(text, std::regex("\\s+"), " ");
  };
  const std::string document = in_one_line(read_file(KYMO_SOURCE_DIR "/docs/faults.md"));
  ASSERT_FALSE(document.empty());
  for (const Row& row : all_rows()) EXPECT_SAYS(document, in_one_line(row.keeps));
}

}  // namespace
}  // namespace kymo::test
