#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "lens/report/page.h"

namespace kymo::report {

// The data of a page as one text. A process without rights makes it of a recording (confine/run.h),
// and add_page_data() makes a page of it in the program, which trusts it no more than the recording.
class PageData {
 public:
  // See Page. An id has small letters, digits and hyphens.
  void add_data(std::string_view id, const nlohmann::ordered_json& json);
  void add_packed(std::string_view id, std::string_view bytes);
  // Everything that is added after this comes behind the script of the page, which shows the rest
  // before this is loaded.
  void add_script_here();
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  void add(char kind, std::string_view id, std::string_view bytes);
  std::string text_;
};

// Adds such a text, and the script, to a page. Nothing in the text can end an element of the page,
// begin another one, or run.
// Errors: data_loss: it is no such text.
Result<void> add_page_data(std::string_view text, std::string_view script, Page& page);

}  // namespace kymo::report
