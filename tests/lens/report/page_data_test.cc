#include "lens/report/page_data.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lens/report/diff_page.h"
#include "lens/report/html_report.h"

namespace kymo::report {
namespace {

// A text that would become an element of the page if it was not escaped.
constexpr char kHostile[] = "</script><script>steal()</script><!--<script nonce=\"secret\">";

#define NEEDS_PAGES()                                                                       \
  if (const auto page = Page::begin({}); !page && page.error().code == Code::unimplemented) \
  GTEST_SKIP() << page.error().message

std::string element(char kind, const std::string& id, const std::string& bytes) {
  return std::string(1, kind) + ' ' + id + ' ' + std::to_string(bytes.size()) + '\n' + bytes;
}

std::size_t count(const std::string& text, const std::string& wanted) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(wanted, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(PageDataTest, WhateverAReaderReturnsIsNeitherAScriptNorAnElement) {
  NEEDS_PAGES();
  const std::string plain = report_page("", "secret").value();
  const std::string page =
      report_page(element('j', "recording", kHostile) + element('p', "outline0", kHostile) +
                      element('s', "script", "") + element('p', "samples0-0", kHostile),
                  "secret")
          .value();
  EXPECT_EQ(page.find("steal()</script>"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>steal()"), std::string::npos);
  EXPECT_EQ(count(page, "<!--"), count(plain, "<!--"));
  EXPECT_EQ(count(page, "<script nonce=\"secret\">"), count(plain, "<script nonce=\"secret\">"));
  EXPECT_EQ(count(page, "<script"), count(plain, "<script") + 3);
  EXPECT_EQ(count(page, "</script>"), count(plain, "</script>") + 3);
}

TEST(PageDataTest, WhatIsNoDataIsRefused) {
  NEEDS_PAGES();
  for (const std::string& text :
       {std::string(kHostile), std::string("<script>steal()</script>\n"), std::string("j"),
        std::string("j a"), std::string("j a 1"), std::string("j a 1\n"), std::string("j a -1\n"),
        std::string("j a 18446744073709551616\n"), std::string("j  0\n"),
        std::string("j a\"><script> 0\n"), std::string("x a 0\n"),
        element('j', std::string(65, 'a'), ""), element('j', "a\" onload=\"steal()", ""),
        element('s', "script", "") + element('s', "script", ""),
        element('s', "script", "") + "x"}) {
    for (const auto& page : {report_page(text, "secret"), diff_page(text)}) {
      ASSERT_FALSE(page.ok()) << text;
      EXPECT_EQ(page.error().code, Code::data_loss);
    }
  }
}

TEST(PageDataTest, TheScriptIsWhereItWasAskedFor) {
  NEEDS_PAGES();
  PageData data;
  data.add_data("recording", {{"a", "<"}});
  data.add_script_here();
  data.add_packed("later", "abc");
  const std::string page = report_page(std::move(data).text(), "").value();
  const std::size_t script = page.find("<script>");
  EXPECT_LT(page.find("id=\"recording\">{\"a\":\"\\u003c\"}</script>"), script);
  EXPECT_LT(script, page.find("id=\"later\">YWJj</script>"));
}

}  // namespace
}  // namespace kymo::report
