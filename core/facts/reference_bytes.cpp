#include "core/facts/reference_bytes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "core/facts/evidence.h"
#include "core/facts/optimizer_states.h"
#include "core/facts/transposed_law.h"
#include "core/formats/box_reader.h"

namespace shw {
namespace {

constexpr std::uint64_t kSlab = std::uint64_t{4} << 20;  // fits a cache, and malloc keeps it

bool is_same_item(const Checkpoint& a, ChunkId one, const Checkpoint& b, ChunkId two) {
  if (a.directory()->name() != b.directory()->name()) return false;
  auto first = a.item(one), second = b.item(two);
  return first && second && is_reachable(a, *first) && is_reachable(b, *second) &&
         a.file(first->file).path == b.file(second->file).path && first->offset == second->offset &&
         first->length == second->length;
}

// In slabs of rows.
bool are_equal(BoxReader& left_boxes, ChunkId one, BoxReader& right_boxes, ChunkId two,
               std::uint64_t element) {
  const Checkpoint& a = left_boxes.checkpoint();
  if (is_same_item(a, one, right_boxes.checkpoint(), two)) return true;
  Box box = {Extents(a.sizes(one).size(), 0), copy_of(a.sizes(one))};
  auto bytes = static_cast<std::uint64_t>(volume(box.sizes).value_or(0)) * element;
  if (bytes <= kSlab || box.sizes.empty()) {
    auto left = left_boxes.read(one, box), right = right_boxes.read(two, box);
    return left && right && *left == *right;
  }
  std::int64_t rows = box.sizes[0];
  auto step = static_cast<std::int64_t>(
      std::max<std::uint64_t>(1, kSlab / (bytes / static_cast<std::uint64_t>(rows))));
  for (std::int64_t row = 0; row < rows; row += step) {
    box.offsets[0] = row;
    box.sizes[0] = std::min(step, rows - row);
    auto left = left_boxes.read(one, box), right = right_boxes.read(two, box);
    if (!left || !right || *left != *right) return false;
  }
  return true;
}

bool are_cut_alike(const Checkpoint& checkpoint, TensorId tensor, const Checkpoint& reference,
                   TensorId other) {
  auto one = checkpoint.chunks(tensor), two = reference.chunks(other);
  bool alike = checkpoint.directory() != nullptr && reference.directory() != nullptr &&
               checkpoint.dtype(tensor) == reference.dtype(other) &&
               size_of(checkpoint.dtype(tensor)) != 0 && one.size() == two.size() &&
               same(checkpoint.shape(tensor), reference.shape(other)) &&
               judge_tiling(checkpoint, tensor).tiling == Tiling::kExact;
  for (std::uint32_t i = 0; alike && i < one.size(); ++i)
    alike = same(checkpoint.offsets(one[i]), reference.offsets(two[i])) &&
            same(checkpoint.sizes(one[i]), reference.sizes(two[i]));
  return alike;
}

// Weights that several matrices were fused into: where an order goes wrong.
bool is_fused(std::string_view fqn) {
  constexpr std::array<std::string_view, 17> kFused = {
      "fc1",    "gate_up", "up_gate", "gateup", "w13",           "qkv",     "query_key_value",
      "c_attn", "in_proj", "wqkv",    "wi",     "dense_h_to_4h", "experts", "w_in",
      "mlp1",   "glu",     "kv_proj"};
  std::string lower(fqn);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kFused.begin(), kFused.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

// More chunks than ranks that wrote them: a rank that saved in parts.
bool is_cut_by_its_writers(const Checkpoint& checkpoint, TensorId tensor) {
  std::map<std::uint32_t, int> by_writer;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (volume(checkpoint.sizes(chunk)) == 0) continue;
    if (++by_writer[checkpoint.writer(chunk).value_or(0)] > 1) return true;
  }
  return false;
}

}  // namespace

bool is_read_whole(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  return input.depth == Depth::kData || is_square(c.shape(tensor)) || is_fused(c.fqn(tensor)) ||
         is_cut_by_its_writers(c, tensor);
}

bool has_equal_bytes(const Checkpoint& checkpoint, TensorId tensor, const Checkpoint& reference,
                     TensorId other) {
  if (!are_cut_alike(checkpoint, tensor, reference, other)) return false;
  auto one = checkpoint.chunks(tensor), two = reference.chunks(other);
  std::uint64_t element = size_of(checkpoint.dtype(tensor));
  BoxReader boxes(checkpoint), reference_boxes(reference);
  for (std::uint32_t i = 0; i < one.size(); ++i) {
    if (!are_equal(boxes, one[i], reference_boxes, two[i], element)) return false;
  }
  return true;
}

bool has_same_items(const Checkpoint& checkpoint, TensorId tensor, const Checkpoint& reference,
                    TensorId other) {
  if (!are_cut_alike(checkpoint, tensor, reference, other)) return false;
  auto one = checkpoint.chunks(tensor), two = reference.chunks(other);
  for (std::uint32_t i = 0; i < one.size(); ++i) {
    if (!is_same_item(checkpoint, one[i], reference, two[i])) return false;
  }
  return true;
}

std::set<TensorId> equal_to_reference(const CheckInput& input) {
  std::set<TensorId> equal;
  if (input.reference == nullptr || input.depth == Depth::kMetadata) return equal;
  for (TensorId tensor : each_tensor(input)) {
    auto other = input.counterparts[index_of(tensor)];
    auto compare = is_read_whole(input, tensor) ? has_equal_bytes : has_same_items;
    if (other && compare(input.checkpoint, tensor, *input.reference, *other)) equal.insert(tensor);
  }
  return equal;
}

std::vector<std::string> states_left(const CheckInput& input, const std::set<TensorId>& mended,
                                     const std::set<TensorId>& right) {
  const Checkpoint& c = input.checkpoint;
  std::vector<std::string> left;
  std::vector<OptimizerState> states = optimizer_states(c, input.progress);
  for (const OptimizerState& state : each_of(states, input)) {
    bool asked = state.parameter && mended.contains(*state.parameter) &&
                 same(c.shape(state.state), c.shape(*state.parameter));
    if (!asked || mended.contains(state.state)) continue;
    if (right.contains(state.state)) continue;
    left.emplace_back(c.fqn(state.state));
  }
  return left;
}

std::optional<TensorValues> whole_values(const Checkpoint& checkpoint, TensorId tensor) {
  if (checkpoint.directory() == nullptr || size_of(checkpoint.dtype(tensor)) == 0)
    return std::nullopt;
  if (judge_tiling(checkpoint, tensor).tiling != Tiling::kExact) return std::nullopt;
  auto values = read_tensor(checkpoint, tensor, kComparedUpTo);
  if (!values || values->uncovered != 0) return std::nullopt;
  return std::move(*values);
}

std::optional<TensorId> counterpart(const CheckInput& input, TensorId tensor) {
  if (input.reference == nullptr || index_of(tensor) >= input.counterparts.size())
    return std::nullopt;
  auto other = input.counterparts[index_of(tensor)];
  if (!other || input.reference->dtype(*other) != input.checkpoint.dtype(tensor))
    return std::nullopt;
  return other;
}

std::unordered_set<std::string_view> with_diagnosis(const std::vector<Finding>& findings) {
  std::unordered_set<std::string_view> subjects;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kInfo || finding.diagnoses.empty()) continue;
    for (const std::string& subject : finding.subjects) subjects.insert(subject);
  }
  return subjects;
}

}  // namespace shw
