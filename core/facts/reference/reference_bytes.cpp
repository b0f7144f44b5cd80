#include "core/facts/reference/reference_bytes.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "core/base/checked.h"
#include "core/base/encoder.h"
#include "core/base/letter_case.h"
#include "core/facts/evidence.h"
#include "core/facts/reference/transposed_constraint.h"
#include "core/facts/states/optimizer_states.h"

namespace shw {
namespace {

// True for fused weights, where orders go wrong.
bool is_fused(std::string_view fqn) {
  constexpr std::array<std::string_view, 17> kFused = {
      "fc1",    "gate_up", "up_gate", "gateup", "w13",           "qkv",     "query_key_value",
      "c_attn", "in_proj", "wqkv",    "wi",     "dense_h_to_4h", "experts", "w_in",
      "mlp1",   "glu",     "kv_proj"};
  const std::string name = lowered(fqn);
  return std::any_of(kFused.begin(), kFused.end(),
                     [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

// True if a rank saved its part in several chunks.
bool has_writer_with_several_chunks(const Checkpoint& checkpoint, TensorId tensor) {
  std::map<std::uint32_t, int> by_writer;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (volume(checkpoint.sizes(chunk)) == 0) continue;
    if (++by_writer[checkpoint.writer(chunk).value_or(0)] > 1) return true;
  }
  return false;
}

}  // namespace

bool is_read_whole(const CheckInput& input, TensorId tensor) {
  // Tensors up to this size cost less to read than opening their file.
  constexpr std::uint64_t kSmallBytes = 64 << 10;
  const Checkpoint& c = input.checkpoint;
  if (bytes_of_elements(c, tensor) <= kSmallBytes) return true;
  return input.depth == Depth::kData || is_square(c.shape(tensor)) || is_fused(c.fqn(tensor)) ||
         has_writer_with_several_chunks(c, tensor);
}

std::vector<std::string> states_not_repaired_with(const CheckInput& input,
                                                  const std::set<TensorId>& mended,
                                                  const std::set<TensorId>& right) {
  const Checkpoint& c = input.checkpoint;
  std::vector<std::string> left;
  for (const OptimizerState& state : each_state(input)) {
    bool asked = state.parameter && mended.contains(*state.parameter) &&
                 same(c.shape(state.state), c.shape(*state.parameter));
    if (!asked || mended.contains(state.state)) continue;
    if (right.contains(state.state)) continue;
    left.emplace_back(c.fqn(state.state));
  }
  return left;
}

Result<std::vector<std::string>> map_comparisons(
    const CheckInput& input, const std::string& step, const std::vector<ComparisonCost>& costs,
    const std::function<Result<std::string>(std::size_t)>& find) {
  std::vector<std::uint64_t> reads, holds;
  std::uint64_t all = 0;
  for (const ComparisonCost& cost : costs) {
    reads.push_back(cost.reads);
    holds.push_back(cost.holds);
    all = checked_add(all, cost.reads).value_or(UINT64_MAX);
  }
  if (input.progress != nullptr && all != 0)
    input.progress->begin(Phase::kReadingBytes, all, /*bytes=*/true);
  return map_across_ranks(input.team, {step, reads, find, input.progress, {holds, input.memory}});
}

Result<std::vector<std::vector<std::uint64_t>>> map_numeric_comparisons(
    const CheckInput& input, const std::string& step, const std::vector<ComparisonCost>& costs,
    const std::function<std::vector<std::uint64_t>(std::size_t)>& find) {
  auto packed = [&](std::size_t i) -> Result<std::string> {
    Encoder payload;
    payload.add(find(i));
    return packed_text(payload.take());
  };
  SHW_TRY(const auto told, map_comparisons(input, step, costs, packed));
  std::vector<std::vector<std::uint64_t>> out;
  for (const std::string& text : told) {
    Decoder payload(std::as_bytes(std::span(text)));
    SHW_TRY(auto numbers, payload.numbers());
    out.push_back(std::move(numbers));
  }
  return out;
}

std::uint64_t bytes_of_elements(const Checkpoint& checkpoint, TensorId tensor) {
  auto bytes = checked_mul(volume(checkpoint.shape(tensor)).value_or(0),
                           std::int64_t{size_of(checkpoint.dtype(tensor))});
  return bytes ? static_cast<std::uint64_t>(*bytes) : UINT64_MAX / 4;
}

std::uint64_t memory_to_read_in_pieces(const Checkpoint& checkpoint, TensorId tensor) {
  // 4 MiB as stored, and as much reordered, cast or decoded ahead.
  constexpr std::uint64_t kMaxHeld = std::uint64_t{16} << 20;
  return std::min(kMaxHeld, 4 * bytes_of_elements(checkpoint, tensor));
}

bool is_incomparable(const CheckInput& input, TensorId tensor, TensorId other) {
  return input.untrusted_in_reference.contains(tensor) &&
         !same(input.checkpoint.shape(tensor), input.reference->shape(other));
}

std::optional<TensorId> comparable_counterpart(const CheckInput& input, TensorId tensor) {
  if (input.reference == nullptr || index_of(tensor) >= input.counterparts.size())
    return std::nullopt;
  auto other = input.counterparts[index_of(tensor)];
  if (!other || is_incomparable(input, tensor, *other) ||
      input.reference->dtype(*other) != input.checkpoint.dtype(tensor))
    return std::nullopt;
  return other;
}

std::unordered_set<std::string_view> subjects_with_diagnosis(const std::vector<Finding>& findings) {
  std::unordered_set<std::string_view> subjects;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo || finding.diagnoses.empty()) continue;
    for (const std::string& subject : finding.subjects) subjects.insert(subject);
  }
  return subjects;
}

}  // namespace shw
