// Chromium without a screen and without a network.
"use strict";
const { chromium } = require("playwright-core");

// For hangs alone, in milliseconds: nothing is expected to come sooner. ctest's limit for the whole test is shorter.
const WATCHDOG = 170_000;
exports.WATCHDOG = WATCHDOG;

exports.launch = async () => {
  const browser = await chromium.launch({
    executablePath: process.env.KYMO_CHROMIUM || "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    timeout: WATCHDOG,
  });
  // Each page of each context waits so long.
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

// Opens a page's file; `faults` gets whatever the page complains of or asks the network for.
exports.open = async (browser, file, faults, options = {}) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || faults.push(request.url()));
  await page.goto("file://" + file);
  await page.waitForFunction(() => document.documentElement.dataset.state === "whole");
  return page;
};
