// The view of kept stack profiles on screens of several sizes.
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { test } = require("node:test");
const { boxOf, until } = require("./pages.js");
const { END, at, faults, opened, shown } = require("./profiles.js");

test("a narrow and a wide screen, light and dark, show all of it without scrolling sideways", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [390, 1280]) {
      const page = await opened(at(END - 80, END), { viewport: { width, height: 900 }, colorScheme });
      for (const name of ["stacks", "compared", "file"]) {
        if (name !== "stacks") await page.selectOption("#profiles-compare", name === "file" ? "file:release-1.folded" : "other");
        await shown(page, ({ compare }) => (compare !== undefined) === (name !== "stacks") && (compare === "file:release-1.folded") === (name === "file"));
        await until("it fits", () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
        assert.ok((await boxOf(page.locator("#profiles-stacks canvas"))).width > width / 2);
        if (process.env.KYMO_SCREENSHOTS) await page.screenshot({ fullPage: true, path: path.join(process.env.KYMO_SCREENSHOTS, `profiles-${width}-${colorScheme}-${name}.png`) });
      }
      await page.context().close();
    }
  }
});

test("no page complained or asked another address", () => assert.deepStrictEqual(faults, []));
