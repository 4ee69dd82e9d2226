// The promises of docs/faults.md and docs/jobs.md about what becomes of a dump.
#include "daemon/state/dump_fate.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace kymo::daemon {

using Process = DumpEvidence::Process;
using Images = DumpEvidence::Images;

// Lets gtest print it.
void PrintTo(const DumpEvidence& evidence, std::ostream* out) {
  *out << "process " << static_cast<int>(evidence.process) << ", images "
       << static_cast<int>(evidence.images) << (evidence.leaves ? ", leaves" : "")
       << (evidence.failed ? ", failed" : "");
}

namespace {

// "complete publish dumped"
std::string words_of(const DumpFate& fate) {
  const char* const images[] = {" publish", " keep", " discard"};
  const char* const job[] = {"", " dumped", " not dumped"};
  return std::string(store::name_of(fate.state)) + images[static_cast<int>(fate.images)] +
         job[static_cast<int>(fate.job)];
}

constexpr char kFailed[] = "failed discard";
constexpr char kOpen[] = "unconfirmed keep";

// What follows if the process has ended, runs on and is unsure. Nothing of the process is anywhere but in the images if
// it has ended.
struct Line {
  const char* name;
  Images images;
  std::string ended;
  std::string wanted;     // it runs on, as it was to
  std::string worthless;  // it runs on, because its dump has failed
  std::string unsure;
};

void PrintTo(const Line& line, std::ostream* out) {
  *out << line.name;
}

const Line kLines[] = {
    {"Published", Images::published, "complete publish dumped", "complete publish",
     "complete publish", "complete publish"},
    {"Whole", Images::whole, "complete publish dumped", "complete publish", kFailed, kOpen},
    {"Partial", Images::partial, "failed discard not dumped", kFailed, kFailed, kOpen},
    {"Damaged", Images::damaged, "failed keep not dumped", kFailed, kFailed, kOpen},
    {"ChangedByOthers", Images::changed, "failed keep not dumped", kFailed, kFailed, kOpen},
    {"WrittenToADiskThatIsSilent", Images::written, "unconfirmed keep dumped", kOpen, kFailed,
     kOpen},
    {"InMemory", Images::in_memory, "unconfirmed keep dumped", kFailed, kFailed, kOpen},
    {"WithoutSharedMemory", Images::without_part, "unconfirmed keep dumped", kOpen, kFailed, kOpen},
    {"WithATakenName", Images::hindered, "unconfirmed keep dumped", kOpen, kFailed, kOpen},
    {"Unseen", Images::unseen, kOpen, kOpen, kFailed, kOpen},
    {"OutOfReach", Images::out_of_reach, kOpen, kOpen, kOpen, kOpen},
};

class FateTest : public ::testing::TestWithParam<Line> {};

TEST_P(FateTest, OfAProcessThatHasEnded) {
  for (const bool failed : {false, true}) {
    EXPECT_EQ(words_of(decide({Process::ended, GetParam().images, false, failed})),
              GetParam().ended);
  }
}

TEST_P(FateTest, OfAProcessThatRunsOnAsItWasTo) {
  EXPECT_EQ(words_of(decide({Process::runs, GetParam().images, true, false})), GetParam().wanted);
}

TEST_P(FateTest, OfAProcessThatRunsOnBecauseItsDumpFailed) {
  for (const bool leaves : {false, true}) {
    EXPECT_EQ(words_of(decide({Process::runs, GetParam().images, leaves, true})),
              GetParam().worthless);
  }
  EXPECT_EQ(words_of(decide({Process::runs, GetParam().images, false, false})),
            GetParam().worthless);
}

TEST_P(FateTest, OfAProcessOfWhichNothingIsKnown) {
  for (const bool leaves : {false, true}) {
    for (const bool failed : {false, true}) {
      EXPECT_EQ(words_of(decide({Process::unsure, GetParam().images, leaves, failed})),
                GetParam().unsure);
    }
  }
}

// It counted as dumped, although it had run on and had ended by itself, with its exit status.
TEST_P(FateTest, AJobThatWasToRunOnIsNeverDumped) {
  for (const bool failed : {false, true}) {
    const DumpEvidence left{Process::ended, GetParam().images, true, failed};
    EXPECT_NE(decide(left).job, DumpFate::OfJob::dumped);
    EXPECT_EQ(decide(left).images,
              decide({Process::ended, GetParam().images, false, failed}).images);
  }
}

INSTANTIATE_TEST_SUITE_P(Images, FateTest, ::testing::ValuesIn(kLines),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace kymo::daemon
