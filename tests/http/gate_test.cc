#include "http/gate.h"

#include <gtest/gtest.h>

namespace kymo::http {
namespace {

const Gate kGate("127.0.0.1", "node-1.example", "0123456789abcdef");

Gate::Knock good() {
  return {"localhost:9418", "", "0123456789abcdef", false};
}

int refused(const Gate::Knock& knock) {
  const auto refusal = kGate.refuse(knock);
  return refusal ? refusal->status : 0;
}

TEST(GateTest, TheTokenAndALoopbackNameAreLetIn) {
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:9418", "127.1.2.3", "[::1]:1",
                           "node-1.example:9418", "NODE-1.EXAMPLE"}) {
    Gate::Knock knock = good();
    knock.host = host;
    EXPECT_EQ(refused(knock), 0) << host;
  }
}

TEST(GateTest, AnotherNameIsRefusedWhateverTheToken) {
  for (const char* host : {"", ":", "evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[", "[]",
                           "localhost.evil.example", "[2001:db8::1]:9418", "node-1.example.evil"}) {
    Gate::Knock knock = good();
    knock.host = host;
    EXPECT_EQ(refused(knock), 403) << host;
  }
}

TEST(GateTest, WithoutTheTokenOrWithAnotherNobodyComesIn) {
  for (const char* token : {"", "0", "0123456789abcdeg", "0123456789abcdef0", "0123456789ABCDEF"}) {
    Gate::Knock knock = good();
    knock.token = token;
    EXPECT_EQ(refused(knock), 401) << token;
  }
  Gate::Knock knock = good();
  knock.token = "";
  EXPECT_EQ(Gate("127.0.0.1", "", "").refuse(knock)->status, 401);
  knock.token = "x";
  EXPECT_EQ(Gate("127.0.0.1", "", "").refuse(knock)->status, 401);
}

TEST(GateTest, AnotherOriginIsRefusedAndAChangeNeedsOne) {
  Gate::Knock knock = good();
  for (const char* origin : {"null", "http://evil.example", "http://localhost:9419",
                             "https://localhost:9418", "http://localhost:9418.evil.example"}) {
    knock.origin = origin;
    EXPECT_EQ(refused(knock), 403) << origin;
  }
  knock.origin = "http://localhost:9418";
  EXPECT_EQ(refused(knock), 0);
  knock.changes_state = true;
  EXPECT_EQ(refused(knock), 0);
  knock.origin = "";
  EXPECT_EQ(refused(knock), 403);
}

TEST(GateTest, SecretsAreTheSameOrNot) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("ab", "abc"));
  EXPECT_FALSE(same_secret("abcabc", "abc"));
  EXPECT_FALSE(same_secret("", "abc"));
  EXPECT_FALSE(same_secret("abc", ""));
}

}  // namespace
}  // namespace kymo::http
