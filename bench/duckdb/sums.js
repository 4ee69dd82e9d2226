// sums.js RECORDING THREADS: prints the sum of every column, one per line. bench/read_speed.py runs
// it.
"use strict";
const { DuckDBInstance } = require("@duckdb/node-api");

(async () => {
  const [recording, threads] = process.argv.slice(2);
  const connection = await (await DuckDBInstance.create()).connect();
  await connection.run(`set threads = ${threads}`);
  const result = await connection.runAndReadAll(`select sum(columns(*)) from read_csv('${recording}', delim = '\t', header = true)`);
  for (const value of result.getRows()[0]) console.log(String(value));
})();
