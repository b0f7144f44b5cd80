// XXH3-128 and SHA-256 of byte streams, and their text form. All hashes of the project are
// formatted here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace shw {

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// 32 hex digits, the high half first: XXH3's canonical form.
std::string to_hex(const Hash128& hash);

class RunningHash {
 public:
  RunningHash();
  ~RunningHash();
  RunningHash(RunningHash&&) noexcept;
  RunningHash& operator=(RunningHash&&) noexcept;

  void add(std::span<const std::byte> bytes);
  Hash128 value() const;
  std::string text() const { return to_hex(value()); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Hash128 hash_of(std::span<const std::byte> bytes);

// Incremental SHA-256, the hash in other programs' file lists. OpenSSL uses the processor's SHA
// instructions where available.
class RunningSha256 {
 public:
  RunningSha256();
  ~RunningSha256();
  RunningSha256(const RunningSha256&) = delete;
  RunningSha256& operator=(const RunningSha256&) = delete;

  void add(std::span<const std::byte> bytes);
  // Ends the hash: 64 hex digits, empty if the library refuses SHA-256. Call it last.
  std::string text();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shw
