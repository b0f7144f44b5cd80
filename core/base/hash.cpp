#include "core/base/hash.h"

#ifdef SHW_LIBCRYPTO
#include <openssl/evp.h>
#endif
#ifdef SHW_XXH_DISPATCH
#include <xxh_x86dispatch.h>  // selects the widest vector instructions at run time
#else
#include <xxhash.h>
#endif

#include <array>
#include <utility>

#include "core/base/sha256_plain.h"

namespace shw {
namespace {

// The dispatcher inspects the processor on its first call, which is not thread-safe.
[[maybe_unused]] const bool kVectorsAreChosen = [] {
  std::array<char, 512> bytes{};  // a shorter input is hashed without vector instructions
  return XXH3_128bits(bytes.data(), bytes.size()).low64 != 0;
}();

}  // namespace

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

namespace {
constexpr char kDigits[] = "0123456789abcdef";
}

std::string to_hex(const Hash128& hash) {
  std::string text;
  text.reserve(32);
  for (std::uint64_t half : {hash.high, hash.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  }
  return text;
}

namespace {
std::string sha256_text(std::span<const std::uint8_t> digest) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}
}  // namespace

#ifdef SHW_LIBCRYPTO
struct RunningSha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
  bool is_digest_ready =
      context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;

  void add(std::span<const std::byte> bytes) {
    if (is_digest_ready)
      is_digest_ready = EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1;
  }
  std::string text() {
    std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    if (!is_digest_ready || EVP_DigestFinal_ex(context.get(), digest.data(), &length) != 1)
      return {};
    is_digest_ready = false;
    return sha256_text(std::span(digest).first(length));
  }
};
#else
struct RunningSha256::State {
  PlainSha256 hash;
  bool is_ended = false;

  void add(std::span<const std::byte> bytes) { hash.add(bytes); }
  std::string text() {
    return std::exchange(is_ended, true) ? std::string() : sha256_text(hash.digest());
  }
};
#endif

RunningSha256::RunningSha256() : state_(std::make_unique<State>()) {}
RunningSha256::~RunningSha256() = default;

void RunningSha256::add(std::span<const std::byte> bytes) {
  state_->add(bytes);
}

std::string RunningSha256::text() {
  return state_->text();
}

}  // namespace shw
