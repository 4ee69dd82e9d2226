// An OpenTelemetry collector of a few lines: what it is sent is read by OpenTelemetry's own decoder.
//
//   node collector.js FILE [STATUS]
//
// Writes lines of JSON to FILE: first {"port": N}, then each request's path, content type and spans, as
// decoded. Answers with STATUS, 200 unless told otherwise.
"use strict";
const fs = require("fs");
const http = require("http");
const root = require("@opentelemetry/otlp-transformer/build/src/generated/root");

const trace = root.opentelemetry.proto.collector.trace.v1;
const [file, status = "200"] = process.argv.slice(2);

// Identifiers, which are bytes, in hexadecimal digits; 64-bit numbers as strings.
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
