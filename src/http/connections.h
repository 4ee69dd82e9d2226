#pragma once

#include <cstdint>

namespace kymo::http {

// Cuts the connections that this process serves from the port of this listening socket: whoever
// waits for one to be read or written is told that it is gone. The library that serves them does
// not say which they are; the kernel does. Threads: any.
void cut_connections(int listener);

}  // namespace kymo::http
