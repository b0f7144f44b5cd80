// XXH3-128 of bytes as they come, and the text of a hash: the one place that spells them.
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

}  // namespace shw
