// A kymod for one test, and what it needs.
"use strict";
const { execFile, execFileSync, spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { until } = require("./pages.js");

const CRIU = [process.env.KYMO_TEST_CRIU, path.join(process.env.KYMO_SOURCE, ".deps/bin/criu"), "criu"].find(
  (one) => one && (!one.includes("/") || fs.existsSync(one)));

// The reason why real checkpoints cannot be made here. Empty if they can.
exports.whyNoCriu = (() => {
  try {
    if (process.getuid() !== 0) return "this is not root";
    execFileSync(CRIU, ["check"], { stdio: "pipe" });
    return "";
  } catch (error) {
    return `criu check fails: ${error.message.split("\n")[0]}`;
  }
})();

exports.Kymod = class {
  constructor(flags = []) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-web-"));
    this.socket = path.join(this.folder, "kymod.sock");
    this.flags = flags;
    this.port = 0;
  }

  async start() {
    this.process = spawn(process.env.KYMOD_PROGRAM, ["--socket", this.socket, "--state-dir", path.join(this.folder, "state"),
      "--http", `127.0.0.1:${this.port}`, "--criu", CRIU, ...this.flags], { stdio: ["ignore", "ignore", "pipe"] });
    this.log = "";
    await new Promise((resolve, reject) => {
      this.process.stderr.on("data", (data) => {
        this.log += data;
        const ready = this.log.match(/ready: socket .*, http (\S+:(\d+))/);
        if (ready) [, this.address, this.port] = ready, resolve();
      });
      this.process.on("exit", () => reject(new Error(this.log)));
    });
    this.url = this.kymo("web").trim();
  }

  kymo(...words) {
    return execFileSync(process.env.KYMO_PROGRAM, ["--socket", this.socket, ...words], { encoding: "utf8", stdio: "pipe" });
  }
  // The same, without waiting for the end.
  begin(...words) {
    return new Promise((resolve, reject) => execFile(process.env.KYMO_PROGRAM, ["--socket", this.socket, ...words],
      { encoding: "utf8" }, (error, out, err) => (error ? reject(new Error(err)) : resolve(out))));
  }
  // Starts a job that counts, and waits until all its memory is written.
  async run(name, mib = 64) {
    const job = JSON.parse(this.kymo("run", "process", "--json", "--name", name, "--", process.env.CHURN_PROGRAM, "--mib", String(mib)));
    await until("the job counts", () => fs.statSync(job.stdout_path).size > 0);
    return job;
  }

  async stop() {
    if (this.process.exitCode !== null) return;
    const ended = new Promise((resolve) => this.process.removeAllListeners("exit").on("exit", resolve));
    this.process.kill("SIGTERM");
    await ended;
  }
  async end() {
    for (const job of JSON.parse(this.kymo("ps", "--json"))) if (job.state === "running") process.kill(job.pid, "SIGKILL");
    await this.stop();
    fs.rmSync(this.folder, { recursive: true });
  }
};
