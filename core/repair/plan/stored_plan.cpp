#include "core/repair/plan/stored_plan.h"

#include "core/formats/common/packed_text.h"

namespace shw {
namespace {

constexpr std::size_t kMaxPlain = 64 << 10;
// Limit on decompression, because the file is untrusted. Real plans compress 10 to 60 times.
constexpr std::uint64_t kMaxTimes = 100;

}  // namespace

std::string encode_stored_plan(std::string plan) {
  if (plan.size() <= kMaxPlain) return plan;
  std::string packed = packed_text(plan);
  return plan.size() / kMaxTimes <= packed.size() ? packed : plan;
}

Result<std::string> decode_stored_plan(const std::string& kept) {
  if (kept.starts_with('{')) return kept;
  return unpacked_text(kept, kMaxTimes * kept.size() + kMaxTimes);
}

}  // namespace shw
