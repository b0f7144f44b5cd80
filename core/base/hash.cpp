#include "core/base/hash.h"

#include <xxhash.h>

namespace shw {

struct RunningHash::State {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> xxh{XXH3_createState(), &XXH3_freeState};
};

RunningHash::RunningHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->xxh.get());
}
RunningHash::~RunningHash() = default;
RunningHash::RunningHash(RunningHash&&) noexcept = default;
RunningHash& RunningHash::operator=(RunningHash&&) noexcept = default;

void RunningHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh.get(), bytes.data(), bytes.size());
}

Hash128 RunningHash::value() const {
  XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh.get());
  return {hash.high64, hash.low64};
}

Hash128 hash_of(std::span<const std::byte> bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::string to_hex(const Hash128& hash) {
  std::string text;
  for (std::uint64_t half : {hash.high, hash.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[half >> shift & 15];
  }
  return text;
}

}  // namespace shw
