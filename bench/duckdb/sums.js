// sums.js RECORDING THREADS: the sum of every column, a line each. Run by bench/read_speed.py.
"use strict";
const { DuckDBInstance } = require("@duckdb/node-api");

(async () => {
  const [recording, threads] = process.argv.slice(2);
  const connection = await (await DuckDBInstance.create()).connect();
  await connection.run(`set threads = ${threads}`);
  const result = await connection.runAndReadAll(`select sum(columns(*)) from read_csv('${recording}', delim = '\t', header = true)`);
  for (const value of result.getRows()[0]) console.log(String(value));
})();
