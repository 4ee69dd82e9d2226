#pragma once

#include "analysis/summary.h"
#include "export/export.h"
#include "export/export_file.h"

// One function for each format, which writes the whole content. export.cc commits the file.
namespace kymo::exporting {

Result<void> write_csv(const analysis::Summary& summary, ExportFile& file);
Result<void> write_trace_json(const analysis::Summary& summary, ExportFile& file);
Result<void> write_clickhouse(const analysis::Summary& summary, const ExportOptions& options,
                              ExportFile& file);
// `near`: a file in the folder in which the temporary column store is made.
Result<void> write_open_metrics(const analysis::Summary& summary, const ExportOptions& options,
                                const std::string& near, ExportFile& file, Exported& exported);
Result<void> write_sqlite(const analysis::Summary& summary, const std::string& path);

}  // namespace kymo::exporting
