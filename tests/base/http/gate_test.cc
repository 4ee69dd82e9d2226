#include "base/http/gate.h"

#include <gtest/gtest.h>

namespace kymo::http {
namespace {

const Gate kGate("127.0.0.1", "node-1.example", "0123456789abcdef");

Gate::Credentials good() {
  return {"localhost:9418", "", "0123456789abcdef", false};
}

int refused(const Gate::Credentials& credentials) {
  const auto refusal = kGate.refuse(credentials);
  return refusal ? refusal->status : 0;
}

TEST(GateTest, TheTokenAndALoopbackNameAreLetIn) {
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:9418", "127.1.2.3", "[::1]:1",
                           "node-1.example:9418", "NODE-1.EXAMPLE"}) {
    Gate::Credentials credentials = good();
    credentials.host = host;
    EXPECT_EQ(refused(credentials), 0) << host;
  }
}

TEST(GateTest, AHostHasANameOrAnAddressAndAPort) {
  for (const char* host : {"", ":", "a", "A-1_b.c~:0", "127.0.0.1:9418", "[::1]", "[::1]:65535",
                           "[::ffff:127.0.0.1]:"}) {
    EXPECT_TRUE(is_host(host)) << host;
  }
  for (const char* host : {"a b", "a@b", "a:1@b", "a:b", "a:1:2", "a:65536", "a:-1", "[", "[::1",
                           "[::1]a", "[g]", "::1", "a/b", "a\x80", "a%2e"}) {
    EXPECT_FALSE(is_host(host)) << host;
  }
}

TEST(GateTest, AnotherNameIsRefusedWhateverTheToken) {
  for (const char* host : {"", ":", "evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[", "[]",
                           "localhost.evil.example", "[2001:db8::1]:9418", "node-1.example.evil"}) {
    Gate::Credentials credentials = good();
    credentials.host = host;
    EXPECT_EQ(refused(credentials), 403) << host;
  }
}

TEST(GateTest, WithoutTheTokenOrWithAnotherNobodyComesIn) {
  for (const char* token : {"", "0", "0123456789abcdeg", "0123456789abcdef0", "0123456789ABCDEF"}) {
    Gate::Credentials credentials = good();
    credentials.token = token;
    EXPECT_EQ(refused(credentials), 401) << token;
  }
  Gate::Credentials credentials = good();
  credentials.token = "";
  EXPECT_EQ(Gate("127.0.0.1", "", "").refuse(credentials)->status, 401);
  credentials.token = "x";
  EXPECT_EQ(Gate("127.0.0.1", "", "").refuse(credentials)->status, 401);
}

TEST(GateTest, AnotherOriginIsRefusedAndAChangeNeedsOne) {
  Gate::Credentials credentials = good();
  for (const char* origin : {"null", "http://evil.example", "http://localhost:9419",
                             "https://localhost:9418", "http://localhost:9418.evil.example"}) {
    credentials.origin = origin;
    EXPECT_EQ(refused(credentials), 403) << origin;
  }
  credentials.origin = "http://localhost:9418";
  EXPECT_EQ(refused(credentials), 0);
  credentials.changes_state = true;
  EXPECT_EQ(refused(credentials), 0);
  credentials.origin = "";
  EXPECT_EQ(refused(credentials), 403);
}

TEST(GateTest, ComparesWholeSecrets) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("ab", "abc"));
  EXPECT_FALSE(same_secret("abcabc", "abc"));
  EXPECT_FALSE(same_secret("", "abc"));
  EXPECT_FALSE(same_secret("abc", ""));
}

}  // namespace
}  // namespace kymo::http
