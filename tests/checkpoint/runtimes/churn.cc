#include "churn.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <iterator>

#include "base/proc/process.h"

namespace kymo::runtime {
namespace {

std::string whole(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

Churn::Churn(Runtime& runtime, const test::TemporaryDirectory& folder, int mib)
    : out_(folder.path() + "/churn.out"), err_(folder.path() + "/churn.err") {
  const Result<ProcessId> id =
      runtime.run({{KYMO_CHURN, "--mib", std::to_string(mib), "--rate", "16"},
                   {"PATH=/usr/bin:/bin"},
                   folder.path(),
                   out_,
                   err_});
  if (!id) {
    ADD_FAILURE() << id.error().message;
    return;
  }
  id_ = *id;
  EXPECT_TRUE(test::eventually([&] { return count() > 0; }, std::chrono::seconds(30))) << errors();
}

Churn::~Churn() {
  if (id_.pid > 0 && probe::process_lives(id_.pid, id_.start_ticks)) {
    kill(id_.pid, SIGKILL);
    test::eventually([&] { return !probe::read_process(id_.pid).ok(); });
  }
}

long Churn::count() const {
  const std::string text = whole(out_);
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos) {
    return -1;
  }
  const std::size_t begin = text.rfind("count ", end);
  return begin == std::string::npos ? -1 : std::stol(text.substr(begin + 6, end - begin - 6));
}

bool Churn::goes_on() const {
  const long now = count();
  return test::eventually([&] { return count() > now; });
}

std::string Churn::errors() const {
  return whole(err_);
}

}  // namespace kymo::runtime
