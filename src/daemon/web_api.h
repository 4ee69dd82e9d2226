#pragma once

#include <prometheus/collectable.h>

#include <memory>

#include "daemon/parts.h"
#include "http/server.h"

namespace kymo::daemon {

// /metrics and /healthz, for anybody: they carry no pids, paths or command lines.
void add_open_paths(http::Server& server, std::shared_ptr<prometheus::Collectable> metrics);

// The page and what it asks for, for those who have the token (docs/web.md). `parts` must outlive
// the server.
void add_page_paths(http::Server& server, const Parts& parts);

}  // namespace kymo::daemon
