// report.js RECORDING NAMES WINDOW_NS SHARES: prints, for each counter, its lowest, highest and mean value, and percentiles
// of its rate over windows, as JSON. bench/report_speed.py runs it.
// windows, as JSON. Run by bench/report_speed.py.
"use strict";
const { DuckDBInstance } = require("@duckdb/node-api");

(async () => {
  const [recording, list, window, shares] = process.argv.slice(2);
  const names = list.split(",");
  const each = (make) => names.map(make).join(", ");
  const connection = await (await DuckDBInstance.create()).connect();
  const result = await connection.runAndReadAll(`
    with rows as (select "Time (ns)" as t, * exclude ("Time (ns)") from read_csv('${recording}', delim = '\t', header = true)),
      lasts as (select t // ${window} as w, count(*) as n, max(t) as t,
                ${each((c) => `min(${c}) as ${c}_low, max(${c}) as ${c}, sum(${c}) as ${c}_sum`)} from rows group by w),
      rates as (select *, ${each((c) => `(${c} - lag(${c}) over (order by w)) * 1e9 / (t - lag(t) over (order by w)) as ${c}_rate`)}
                from lasts)
    select ${each((c) => `min(${c}_low), max(${c}), sum(${c}_sum) / sum(n), quantile_cont(${c}_rate, ${shares})`)} from rates`);
  const values = result.getRows()[0].map((value) => (value.items ? value.items.map(Number) : Number(value)));
  console.log(JSON.stringify(Object.fromEntries(names.map((name, i) => [name, values.slice(4 * i, 4 * i + 4).flat()]))));
})();
