// Counts this process's network traffic, for display to the user.
#pragma once

#include <atomic>
#include <cstdint>

namespace shw {

struct RemoteTraffic {
  std::atomic<std::uint64_t> requests{0};  // number sent, including retries
  std::atomic<std::uint64_t> bytes{0};     // of bodies, received and sent
};

inline RemoteTraffic remote_traffic;

inline void count_request() {
  remote_traffic.requests.fetch_add(1, std::memory_order_relaxed);
}
inline void count_received_bytes(std::uint64_t bytes) {
  remote_traffic.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace shw
