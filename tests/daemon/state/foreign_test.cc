#include "daemon/state/foreign.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/confine/helper.h"
#include "support/temporary_directory.h"

namespace kymo::daemon {
namespace {

// What a reader could answer that an attacker controls. The "images" path is the answer.
Result<std::string> lie(const std::string& images_dir) {
  return images_dir;
}

// The pids of the answer are passed to kill(2), for which -1 means every process of the machine.
TEST(ForeignFilesTest, AReaderThatLiesIsNotBelieved) {
  const auto helper = confine::Helper::start({{"look at images", lie}}).value();
  const ForeignFiles files(*helper);
  const auto look = [&](const std::string& said) { return files.look_at_images(said, nullptr); };
  const auto good = look(R"({"tree":[[7,0,7,7,[7,8]]],"planned":{}})");
  ASSERT_TRUE(good.ok()) << good.error().message;
  EXPECT_EQ(good->tree.front().pid, 7);
  EXPECT_EQ(good->tree.front().threads, (std::vector<pid_t>{7, 8}));
  EXPECT_FALSE(look(R"({"tree":[[7,0,7,7,[7,8]]]})").ok()) << "its faults are not known";
  for (const char* said : {"", "[]", "{}"}) EXPECT_FALSE(look(said).ok()) << said;
  for (const char* tree : {"[]", "[[-1,0,0,0,[]]]", "[[0,0,0,0,[]]]", "[[4294967295,0,0,0,[]]]",
                           "[[18446744073709551615,0,0,0,[]]]", "[[7,0,0,0,[-1]]]",
                           R"([["7",0,0,0,[]]])", "[[7,0]]", "[7]", R"([{"0":7}])"}) {
    const std::string said = R"({"planned":{},"tree":)" + std::string(tree) + "}";
    EXPECT_FALSE(look(said).ok()) << said;
  }
}

TEST(ForeignFilesTest, ARecordIsReadByTheReader) {
  const test::TemporaryDirectory folder;
  const auto helper = confine::Helper::start(foreign_readers()).value();
  const ForeignFiles files(*helper);
  const CheckpointDir dir(folder.path());
  EXPECT_EQ(files.record(dir).error().code, Code::not_found);
  static_cast<void>(folder.file("checkpoint.json", R"({"format_version":1,"state":"complete"})"));
  const auto record = files.record(dir);
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record->at("state"), "complete");
  static_cast<void>(folder.file("checkpoint.json", R"({"format_version":1,"images":[7]})"));
  EXPECT_FALSE(files.record(dir)->contains("images")) << "it may be long";
  EXPECT_EQ(files.whole_record(dir)->at("images"), nlohmann::json::array({7}));
  static_cast<void>(folder.file("checkpoint.json", "["));
  EXPECT_EQ(files.record(dir).error().code, Code::data_loss);

  const auto liar = confine::Helper::start({{"read a record", lie}}).value();
  EXPECT_FALSE(ForeignFiles(*liar).record(dir).ok()) << "the answer is not a JSON object";
}

TEST(ForeignFilesTest, AStackProfileIsReadByTheReader) {
  const test::TemporaryDirectory folder;
  const auto helper = confine::Helper::start(foreign_readers()).value();
  const ForeignFiles files(*helper);
  const auto read = [&](const std::string& name) {
    return files.stacks(folder.path(), name, stacks::Quantity::cpu);
  };
  static_cast<void>(folder.file("a.folded", "web;main;work 12\n"));
  const auto good = read("a.folded");
  ASSERT_TRUE(good.ok()) << good.error().message;
  EXPECT_EQ(good->sum().samples, 12U);
  static_cast<void>(folder.file("b.pb.gz", "this is no profile"));
  EXPECT_EQ(read("b.pb.gz").error().message, "b.pb.gz is no profile of pprof, or is damaged");
  static_cast<void>(folder.file("c.folded", "<html>\n"));
  EXPECT_EQ(read("c.folded").error().code, Code::data_loss);
  EXPECT_EQ(read("gone.pb.gz").error().code, Code::not_found);
  EXPECT_FALSE(read("../" + folder.path() + "/a.folded").ok())
      << "the path leads out of the folder";

  for (const char* said : {"", "nonsense", "{}"}) {
    const auto liar = confine::Helper::start({{"read a stack profile", lie}}).value();
    const auto found = ForeignFiles(*liar).stacks("/", said, stacks::Quantity::cpu);
    EXPECT_EQ(found.error().code, Code::data_loss) << said;
    EXPECT_EQ(found.error().message.find('\n'), std::string::npos);
  }
}

Result<std::string> tell(const std::string& request) {
  return "j recording " + std::to_string(request.size()) + "\n" + request;
}

TEST(ForeignFilesTest, AReaderThatMakesAPageDoesNotKnowItsNonceAndRunsNoScript) {
  const auto helper = confine::Helper::start({{"make the data of a page", tell}}).value();
  const std::string hostile = "/x/</script><script>steal()</script>";
  const Result<std::string> page = ForeignFiles(*helper).page(hostile, "secret");
  if (!page && page.error().code == Code::unimplemented) GTEST_SKIP() << page.error().message;
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_NE(page->find("id=\"recording\">/x/\\u003c/script>\\u003cscript>steal()"),
            std::string::npos)
      << "the reader was told only the path, not the nonce";
  EXPECT_EQ(page->find("<script>steal()"), std::string::npos);

  const auto liar = confine::Helper::start({{"make the data of a page", lie}}).value();
  EXPECT_EQ(ForeignFiles(*liar).page("<script>steal()</script>", "secret").error().code,
            Code::data_loss);
}

}  // namespace
}  // namespace kymo::daemon
