#include "http/head.h"

#include <gtest/gtest.h>

namespace kymo::http {
namespace {

TEST(HeadTest, AllThatIsLookedAtIsRead) {
  const Head head = read_head(
      "GET /a%20b?x=1&y=%C3%A4&x=2 HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://a\r\n"
      "Authorization: Bearer t\r\nRange: bytes=0-1\r\n\r\n");
  const Head expected{.refused = 0,
                      .method = "GET",
                      .path = "/a b",
                      .query = {{"x", "2"}, {"y", "\xc3\xa4"}},
                      .host = "localhost:1",
                      .origin = "http://a",
                      .authorization = "Bearer t"};
  EXPECT_EQ(json_of(head), json_of(expected));
}

TEST(HeadTest, WhatIsNoRequestIsRefused) {
  for (const char* text :
       {"", "\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "x y z\r\n\r\n"}) {
    EXPECT_GE(read_head(text).refused, 400) << text;
  }
}

TEST(HeadTest, ABodyIsNotRead) {
  const Head head = read_head(
      "POST /x HTTP/1.1\r\nContent-Length: 5\r\nContent-Type: "
      "application/x-www-form-urlencoded\r\n\r\na=b&c");
  EXPECT_EQ(head.refused, 0);
  EXPECT_EQ(head.method, "POST");
  EXPECT_TRUE(head.query.empty());
}

TEST(HeadTest, IsTheSameThroughJson) {
  const Head head = read_head("GET /?q=%22%5C%0A HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(head.query.at("q"), "\"\\\n");
  EXPECT_EQ(head_in(json_of(head)), head);
  for (const char* text : {"", "{", "[]", "{}", R"({"query":[]})", R"({"query":{"a":1}})"}) {
    EXPECT_EQ(head_in(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace kymo::http
