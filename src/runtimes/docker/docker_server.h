#pragma once

#include <string>
#include <string_view>

#include "kymo/result.h"
#include "probe/process.h"
#include "runtimes/docker/docker_client.h"

namespace kymo::runtime {

// Returns the PATH of the containerd that Docker uses, on which its runc looks for criu. Docker's
// API does not say which containerd that is. It is the containerd that dockerd has started, else
// the one of dockerd's flag --containerd, else the one of /run/containerd/containerd.sock. If
// systemd made Docker's socket and several dockerd run, it is that of the first one.
//
// Threads: any.
// Errors:  those of the client; failed_precondition if dockerd or its containerd is not found, for
//          example because kymod runs in another pid namespace.
// Cost:    one request; looks at every process if systemd made the socket.
Result<std::string> path_of_dockers_containerd(const DockerClient& client);

// Removes the copies of these images that containerd has made for a restore in its folder for
// temporary files. containerd 1.6 forgets them. Call it when no restore of the images runs.
// Threads: any.
// Errors:  none; what is not found or cannot be removed stays.
void remove_copies(const DockerClient& client, const std::string& images_dir);

}  // namespace kymo::runtime
