#pragma once

#include <prometheus/collectable.h>

#include <memory>
#include <vector>

#include "base/http/server.h"
#include "daemon/request/parts.h"

namespace kymo::daemon {

// Adds /metrics and /healthz, which need no token: they show no pids, paths or command lines.
void add_open_paths(http::Server& server,
                    std::vector<std::shared_ptr<prometheus::Collectable>> metrics);

// Adds the page and its API, which need the token (docs/web.md). `parts` must outlive the server.
void add_page_paths(http::Server& server, const Parts& parts);

}  // namespace kymo::daemon
