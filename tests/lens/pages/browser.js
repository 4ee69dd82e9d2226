// Chromium without a screen and without a network.
"use strict";
const { chromium } = require("playwright-core");

// In milliseconds. It only ends a test that hangs. ctest has a shorter limit for the whole test.
const WATCHDOG = 170_000;
exports.WATCHDOG = WATCHDOG;

exports.launch = async () => {
  const browser = await chromium.launch({
    executablePath: process.env.KYMO_CHROMIUM || "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    timeout: WATCHDOG,
  });
  // Sets this timeout for each page of each context.
  const { newContext, newPage } = browser;
  browser.newContext = async (options) => {
    const context = await newContext.call(browser, options);
    context.setDefaultTimeout(WATCHDOG);
    return context;
  };
  browser.newPage = async (options) => {
    const page = await newPage.call(browser, options);
    page.setDefaultTimeout(WATCHDOG);
    return page;
  };
  return browser;
};

// Opens the file of a page. `faults` gets each error of the page, and each request that it makes to the network.
exports.open = async (browser, file, faults, options = {}) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || faults.push(request.url()));
  await page.goto("file://" + file);
  await page.waitForFunction(() => document.documentElement.dataset.state === "whole");
  return page;
};
