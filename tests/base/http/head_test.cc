#include "base/http/head.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/http/request_reader.h"

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

TEST(HeadTest, WhatIsNoCodeOfAByteStaysAsItIs) {
  const Head head =
      read_head("GET /%2e%zz%4%?a+b=c+%2B&&=1&only&x=1=2&%=%#part HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(head.refused, 0);
  EXPECT_EQ(head.path, "/.%zz%4%");
  const std::map<std::string, std::string> expected = {
      {"a b", "c +"}, {"", "1"}, {"only", ""}, {"x", "1=2"}, {"%", "%"}};
  EXPECT_EQ(head.query, expected);
}

TEST(HeadTest, HeadersForALibraryThatDoesMoreThanReadAreIgnored) {
  const Head head = read_head(
      "GET /x HTTP/1.1\r\nHost: a\r\nRange: bytes=9-1\r\nAccept-Encoding: gzip\r\n"
      "Content-Encoding: br\r\nExpect: 100-continue\r\nUpgrade: h2c\r\nConnection: upgrade\r\n"
      "Content-Length: 3\r\n\r\nabc");
  EXPECT_EQ(head.refused, 0);
  EXPECT_EQ(head.path, "/x");
}

TEST(HeadTest, AHeadAsLongAsTheReaderTakesIsRead) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  const std::string whole =
      begin + std::string(RequestReader::kMaxHead - begin.size() - 4, 'x') + "\r\n\r\n";
  EXPECT_EQ(read_head(whole).refused, 0);
  const std::string long_target(RequestReader::kMaxHead - 30, 'y');
  EXPECT_EQ(read_head("GET /" + long_target + " HTTP/1.1\r\n\r\n").path, "/" + long_target);
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
