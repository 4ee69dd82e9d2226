#pragma once

#include <sys/sysmacros.h>

// Numbers of devices, from Documentation/admin-guide/devices.txt of the kernel.
namespace kymo::preflight {

inline constexpr unsigned kMemoryMajor = 1;  // /dev/null, /dev/zero, /dev/urandom
inline constexpr unsigned kConsoleMajor = 4;
inline constexpr unsigned kAuxiliaryMajor = 5;  // /dev/tty, /dev/ptmx
inline constexpr unsigned kMiscMajor = 10;
inline constexpr unsigned kTunMinor = 200;
inline constexpr unsigned kAutofsMinor = 235;
inline constexpr unsigned kFirstPtyMajor = 128;
inline constexpr unsigned kLastPtyMajor = 143;
inline const dev_t kZeroDevice = makedev(kMemoryMajor, 5);

// NVIDIA's nodes, those below /dev/dri, and /dev/nvidia-uvm or /dev/kfd, as CRIU's messages name
// them.
constexpr bool is_gpu(unsigned major) {
  return major == 195 || major == 226 || major == 511;
}

constexpr bool is_terminal(unsigned major) {
  return major == kConsoleMajor || major == kAuxiliaryMajor ||
         (major >= kFirstPtyMajor && major <= kLastPtyMajor);
}

}  // namespace kymo::preflight
