// A small OpenTelemetry collector. It decodes what it receives with OpenTelemetry's own decoder.
//
//   node collector.js FILE [STATUS]
//
// Writes lines of JSON to FILE: first {"port": N}, then the path, content type and decoded spans of
// each request. Answers with STATUS (default 200).
"use strict";
const fs = require("fs");
const http = require("http");
const root = require("@opentelemetry/otlp-transformer/build/src/generated/root");

const trace = root.opentelemetry.proto.collector.trace.v1;
const [file, status = "200"] = process.argv.slice(2);

// Shows identifiers, which are bytes, in hexadecimal digits, and 64-bit numbers as strings.
function readable(key, value) {
  return value && value.type === "Buffer" ? Buffer.from(value.data).toString("hex") : value;
}

function write(object) {
  fs.appendFileSync(file, JSON.stringify(object, readable) + "\n");
}

function answer(request, response) {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const decoded = trace.ExportTraceServiceRequest.decode(Buffer.concat(parts));
    const spans = trace.ExportTraceServiceRequest.toObject(decoded, { longs: String, enums: String });
    write({ path: request.url, type: request.headers["content-type"], resource_spans: spans.resourceSpans });
    response.writeHead(Number(status), { "content-type": "application/x-protobuf" });
    response.end(trace.ExportTraceServiceResponse.encode({}).finish());
  });
}

const server = http.createServer(answer);
server.listen(0, "127.0.0.1", () => write({ port: server.address().port }));
