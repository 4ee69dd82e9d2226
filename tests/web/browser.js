// Chromium without a screen and without a network.
"use strict";
const { chromium } = require("playwright-core");

exports.launch = () =>
  chromium.launch({
    executablePath: process.env.KYMO_CHROMIUM || "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });

// Opens a page's file; `faults` gets whatever the page complains of or asks the network for.
exports.open = async (browser, file, faults, options = {}) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || faults.push(request.url()));
  await page.goto("file://" + file);
  await page.waitForFunction(() => document.documentElement.dataset.state === "whole", null, { timeout: 60_000 });
  return page;
};
