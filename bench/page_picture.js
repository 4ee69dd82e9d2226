// page_picture.js PAGE.html PICTURE.png: takes a picture of the first screen of a page of `kymo report --html`.
// `scripts/bench --demo` runs it.
"use strict";
const { launch, open } = require(process.env.KYMO_BROWSER);

(async () => {
  const browser = await launch();
  const faults = [];
  const page = await open(browser, process.argv[2], faults);
  await page.screenshot({ path: process.argv[3] });
  await browser.close();
  if (faults.length > 0) throw new Error(faults.join("\n"));
})();
