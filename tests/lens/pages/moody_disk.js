// A disk that stalls on request (tests/support/moody_fs.cc).
"use strict";
const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { until } = require("./pages.js");

exports.MoodyDisk = class {
  constructor() {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-disk-"));
    this.inner = path.join(this.folder, "inner");
    this.path = path.join(this.folder, "moody");
    for (const folder of [this.inner, this.path]) fs.mkdirSync(folder);
    this.be("well");
    this.process = spawn(process.env.KYMO_TEST_MOODY_FS, [this.inner, this.path], { stdio: "inherit" });
  }

  mounted() {
    return until("the disk is mounted", () => fs.statSync(this.path).dev !== fs.statSync(this.folder).dev);
  }
  be(mood) {
    fs.rmSync(this.inner + ".held", { force: true });
    fs.writeFileSync(this.inner + ".mood.new", mood);
    fs.renameSync(this.inner + ".mood.new", this.inner + ".mood");
  }
  // Whether a write of memory images has begun to wait since the mood became "stalls-at-pages".
  holdsPages() {
    return fs.existsSync(this.inner + ".held");
  }
  end() {
    this.be("well");
    spawnSync("umount", ["--lazy", this.path]);
    this.process.kill("SIGTERM");
    fs.rmSync(this.folder, { recursive: true });
  }
};
