#include "lens/report/checkpoint_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kymo::report {
namespace {

TEST(ImagesInARecordTest, AreReadAsTheyWereWritten) {
  const criu::ImageList list{{"core-7.img", 12, std::string(32, 'a')}, {"pages-1.img", 4096, ""}};
  const nlohmann::json written = json_of(list);
  EXPECT_EQ(written, nlohmann::json::parse(R"([{"name":"core-7.img","bytes":12,"xxh128":")" +
                                           std::string(32, 'a') +
                                           R"("},{"name":"pages-1.img","bytes":4096}])"));
  std::string fault;
  const auto read = image_list_of({{"images", written}}, fault);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(fault, "");
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->at(0).name, "core-7.img");
  EXPECT_EQ(read->at(0).bytes, 12U);
  EXPECT_EQ(read->at(0).xxh128, std::string(32, 'a'));
  EXPECT_EQ(read->at(1).xxh128, "");
}

TEST(ImagesInARecordTest, NoListIsNoFaultAndADamagedOneIs) {
  std::string fault;
  EXPECT_FALSE(image_list_of(nlohmann::json::object(), fault).has_value());
  EXPECT_EQ(fault, "");
  for (const char* damaged :
       {"null", "7", "{}", "[7]", "[[]]", R"([{"name":"core-7.img"}])", R"([{"bytes":7}])",
        R"([{"name":"","bytes":7}])", R"([{"name":"core-7.img","bytes":-1}])",
        R"([{"name":"core-7.img","bytes":"7"}])"}) {
    fault.clear();
    const auto list = image_list_of({{"images", nlohmann::json::parse(damaged)}}, fault);
    ASSERT_TRUE(list.has_value()) << damaged;
    EXPECT_TRUE(list->empty());
    EXPECT_EQ(fault, "checkpoint.json: its list of images is damaged") << damaged;
  }
}

}  // namespace
}  // namespace kymo::report
