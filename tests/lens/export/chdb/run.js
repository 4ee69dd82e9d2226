// run.js FILE.sql QUERY...: runs the file in a new ClickHouse engine, then each query. Prints each answer as one line of
// JSON.
"use strict";
const fs = require("node:fs");
const { Session } = require("chdb");

const [file, ...queries] = process.argv.slice(2);
const session = new Session();
try {
  session.query(fs.readFileSync(file, "utf8"), "Null");
  for (const query of queries) {
    // Rows are arrays of text, because numbers of JavaScript are exact only up to 2^53.
    const answer = session.query(`SELECT * FROM (${query}) SETTINGS output_format_json_quote_64bit_integers = 1`, "JSONCompact");
    console.log(JSON.stringify(JSON.parse(answer).data));
  }
} finally {
  session.cleanup();
}
