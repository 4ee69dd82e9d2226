#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "kymo/result.h"

namespace kymo::report {

// Puts a page together that is one file and needs no network. Nothing that comes out of a recording
// can end an element of it: names in a recording are anybody's.
class Page {
 public:
  // `nonce`: what scripts and styles of a page that is served carry; empty: it is a file. `style`:
  // besides what the pages share.
  // Errors: unimplemented where the pages are not built in (CMake option KYMO_WEB).
  static Result<Page> begin(std::string_view body, std::string nonce = {},
                            std::string_view style = {});

  // A page of recordings, with the head that they share; `body` is what comes below it.
  static Result<Page> begin_recording(std::string_view body, std::string nonce = {});

  // What scripts read: JSON, and bytes in base64.
  void add_data(std::string_view id, const nlohmann::ordered_json& json);
  void add_packed(std::string_view id, std::string_view bytes);
  // What draws, what the pages of recordings share, and charts over one range of time.
  void add_chart_scripts();
  void add_script(std::string_view code);
  [[nodiscard]] std::string finish() &&;

 private:
  Page() = default;
  std::string text_;
  std::string nonce_;  // as an attribute
};

}  // namespace kymo::report
