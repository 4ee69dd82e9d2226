// hostile_page NONCE: prints the page that kymod makes from the answer of a reader that an attacker
// controls.

#include <iostream>
#include <string>

#include "lens/report/html_report.h"

int main(int argc, char** argv) {
  const std::string hostile =
      "</script><script nonce=\"" + std::string(argc > 1 ? argv[1] : "") +
      "\">window.taken = 1</script><script>window.taken = 2</script><img src=x "
      "onerror=\"window.taken = 3\"><!--<script>";
  std::string data;
  for (const char* head : {"j recording ", "p outline0 ", "j diff ", "p samples0-0 "}) {
    data += head + std::to_string(hostile.size()) + "\n" + hostile;
  }
  const kymo::Result<std::string> page = kymo::report::report_page(data, argc > 1 ? argv[1] : "");
  if (!page) return 1;
  std::cout << *page;
  return std::cout.flush() ? 0 : 1;
}
