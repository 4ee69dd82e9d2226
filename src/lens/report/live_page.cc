#include "lens/report/live_page.h"

#include <utility>

#include "lens/report/page.h"
#include "lens/report/web_assets.h"

namespace kymo::report {

Result<std::string> live_page(const std::string& nonce) {
  Result<Page> page = Page::begin(web_assets::kLiveBody, nonce, web_assets::kLiveStyle);
  if (!page) return page.error();
  page->add_script(web_assets::kLiveScript);
  return std::move(*page).finish();
}

}  // namespace kymo::report
