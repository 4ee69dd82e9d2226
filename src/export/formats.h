#pragma once

#include "analysis/summary.h"
#include "export/export.h"
#include "export/export_file.h"

// One function a format: writes all of it, without the file's end (export.cc has that).
namespace kymo::exporting {

Result<void> write_csv(const analysis::Summary& summary, ExportFile& file);
Result<void> write_trace_json(const analysis::Summary& summary, ExportFile& file);
Result<void> write_clickhouse(const analysis::Summary& summary, const ExportOptions& options,
                              ExportFile& file);
// `near`: the file whose folder has room for what lies on disk meanwhile.
Result<void> write_open_metrics(const analysis::Summary& summary, const ExportOptions& options,
                                const std::string& near, ExportFile& file, Exported& exported);
Result<void> write_sqlite(const analysis::Summary& summary, const std::string& path);

}  // namespace kymo::exporting
