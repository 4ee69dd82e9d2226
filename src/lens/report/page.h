#pragma once

#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::report {

// Builds a page that is one file and needs no network. Data from a recording is escaped, so that it
// cannot end an element of the page: names in a recording are untrusted.
class Page {
 public:
  // `nonce`: the nonce of the scripts and styles of a page that is served. Empty if the page is a
  // file. `style`: styles of this page, in addition to those that all pages have.
  //
  // Errors: unimplemented if the pages are not built in (CMake option KYMO_WEB).
  static Result<Page> begin(std::string_view body, std::string nonce = {},
                            std::string_view style = {});

  // A page of a recording. It begins with the head that these pages share, followed by `body`.
  static Result<Page> begin_recording(std::string_view body, std::string nonce = {});

  // Data for the scripts: the text of JSON, or bytes as base64. The text may be anything: it cannot
  // end its element. The id is trusted.
  void add_json(std::string_view id, std::string_view text);
  void add_packed(std::string_view id, std::string_view bytes);
  void add_script(std::string_view code);
  [[nodiscard]] std::string finish() &&;

 private:
  Page() = default;
  std::string text_;
  std::string nonce_;  // as an HTML attribute, or empty
};

}  // namespace kymo::report
