#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/flat_parts.h"
#include "core/facts/layout/grown_axis.h"
#include "core/rules/explained.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::size_t kMaxOthers = 4096;  // missing tensors; with more, nothing is concluded

// How two shapes differ, for messages: "dim 0 is 2 times as long as expected".
std::string relation(const Checkpoint& checkpoint, TensorId tensor, ExtentsView expected) {
  ExtentsView saved = checkpoint.shape(tensor);
  if (saved.size() != expected.size())
    return fmt::format("it has {} instead of {}", plural(saved.size(), "dimension"),
                       expected.size());
  if (auto why = why_axes_are_not_relabelled(checkpoint, tensor, expected); !why.empty())
    return why;
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < saved.size(); ++d) {
    if (saved[d] == expected[d]) continue;
    if (expected[d] > 0 && saved[d] > expected[d] && saved[d] % expected[d] == 0) {
      parts.push_back(fmt::format("dim {} is {} times as long", d, saved[d] / expected[d]));
    } else if (saved[d] > 0 && expected[d] > saved[d] && expected[d] % saved[d] == 0) {
      parts.push_back(fmt::format("dim {} is 1/{} as long", d, expected[d] / saved[d]));
    } else {
      parts.push_back(fmt::format("dim {} is {} instead of {}", d, saved[d], expected[d]));
    }
  }
  return short_list_text(parts, 8);
}

// True for 4-bit values stored two per byte next to their scales: the shape counts bytes.
bool is_packed_by_two(const Checkpoint& checkpoint, TensorId tensor, ExtentsView expected) {
  const ExtentsView saved = checkpoint.shape(tensor);
  if (saved.empty() || saved.size() != expected.size() || saved.back() < 1 ||
      checked_mul(saved.back(), std::int64_t{2}) != expected.back() ||
      !same(saved.first(saved.size() - 1), expected.first(expected.size() - 1)))
    return false;
  const Dtype dtype = checkpoint.dtype(tensor);
  if (dtype == Dtype::kFloat4E2m1fnX2) return true;
  if (dtype != Dtype::kUint8 && dtype != Dtype::kInt8) return false;
  constexpr std::array<std::string_view, 4> kScales = {"_scale", "_scales", "_scale_inv",
                                                       "_scale_2"};
  return std::any_of(kScales.begin(), kScales.end(), [&](std::string_view suffix) {
    return checkpoint.find(std::string(checkpoint.fqn(tensor)) + std::string(suffix)).has_value();
  });
}

// Loaders of safetensors unpack packed tensors; those of DCP compare shapes.
Finding packed_finding(const std::vector<std::string>& packed) {
  Finding finding{.rule = "shape-mismatch", .severity = Severity::kInfo};
  const bool is_one = packed.size() == 1;
  finding.cause = fmt::format(
      "{} {} two 4-bit values to a byte, so the last dimension is half of the {} that the model "
      "expects: a loader that knows the packing reads {}.",
      plural(packed.size(), "tensor"), is_one ? "packs" : "pack", is_one ? "one" : "ones",
      is_one ? "it" : "them");
  finding.evidence = {{"packed", capped(packed)}, {"count", count_of(packed.size())}};
  finding.subjects = packed;
  return finding;
}

// One extent that replaces another in every tensor: {expected, saved}.
class SingleExtentChange {
 public:
  void add_shapes(ExtentsView saved, ExtentsView expected) {
    ++tensors_;
    if (saved.size() != expected.size()) is_one_ = false;
    for (std::size_t d = 0; is_one_ && d < saved.size(); ++d) {
      if (saved[d] == expected[d]) continue;
      const std::pair other{expected[d], saved[d]};
      is_one_ = !pair_ || *pair_ == other;
      pair_ = other;
    }
  }
  std::string words() const {
    if (!is_one_ || !pair_ || tensors_ < 3) return "";
    return fmt::format(
        " In all {} of them {} is stored where {} is expected, and nothing else differs.",
        human_count(tensors_), pair_->second, pair_->first);
  }

 private:
  std::uint64_t tensors_ = 0;
  bool is_one_ = true;
  std::optional<std::pair<std::int64_t, std::int64_t>> pair_;
};

void find_shape_mismatches(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& checkpoint = facts.checkpoint;
  std::unordered_set<std::string_view> explained;
  for (const Rule* cause :
       {&kPlacementAxisMoved, &kGluSplitLocal, &kLocalSavedAsGlobal, &kAxisDropped, &kTransposed,
        &kVocabularyPadding, &kAxisGrown, &kUnevenShards, &kAxisRepeated})
    explained.merge(explained_by(findings, cause->id));
  Finding finding{.rule = "shape-mismatch"};
  std::vector<std::string> saved, expected, packed;
  std::string how;
  SingleExtentChange one_extent;
  std::vector<MismatchedShape> others;
  for (const auto& [fqn, entry] : each_of(facts.spec->entries, facts)) {
    auto tensor = checkpoint.find(fqn);
    if (!tensor) {
      if (others.size() < kMaxOthers) others.push_back({fqn, {}, entry.shape, false});
      continue;
    }
    ExtentsView shape = checkpoint.shape(*tensor);
    if (same(shape, entry.shape) || explained.contains(fqn)) continue;
    const bool is_packed = is_packed_by_two(checkpoint, *tensor, entry.shape);
    if (is_packed && checkpoint.format().traits.has_one_piece_per_tensor) {
      packed.push_back(fqn);
      continue;
    }
    if (finding.subjects.empty()) {
      finding.evidence = {{"saved", copy_of(shape)}, {"expected", entry.shape}};
      how = relation(checkpoint, *tensor, entry.shape);
      if (is_packed) how += ", as where two 4-bit values are packed into a byte";
    }
    one_extent.add_shapes(shape, entry.shape);
    others.push_back({fqn, copy_of(shape), entry.shape});
    finding.subjects.push_back(fqn);
    saved.push_back(to_text(shape));
    expected.push_back(to_text(entry.shape));
  }
  if (!packed.empty()) findings.push_back(packed_finding(packed));
  if (finding.subjects.empty()) return;
  finding.cause = plural(finding.subjects.size(), "tensor") +
                  (finding.subjects.size() == 1 ? " has" : " have") +
                  " a shape that differs from the model's, and torch refuses the load: " +
                  finding.subjects.front() + " is saved as " + saved.front() + ", expected " +
                  expected.front() + " (" + how + ")." + one_extent.words() +
                  flat_part_text(others);
  finding.evidence.emplace_back("count", count_of(finding.subjects.size()));
  finding.evidence.emplace_back("saved_shapes", std::move(saved));
  finding.evidence.emplace_back("expected_shapes", std::move(expected));
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kShapeMismatch = {
    .id = "shape-mismatch",
    .depth = Depth::kMetadata,
    .title = "A tensor's saved shape differs from the model's",
    .teaches =
        "torch compares the saved global shape with the model's before it copies, and fails with "
        "'Size mismatch between saved ... and current'. Either the checkpoint belongs to another "
        "model or configuration (hidden size, vocabulary padding, number of experts), or the save "
        "recorded a wrong global shape: one rank's shard taken for the whole, or a placement on "
        "the wrong axis. More specific rules look for those; this one reports what none of them "
        "could explain.",
    .lesson = {.drawing = R"(
  saved      [50257, 768]     ┌───────────┐
  expected   [50304, 768]     │           │ 50257 rows of the vocabulary
                              ├ ─ ─ ─ ─ ─ ┤
                              └───────────┘ 47 rows of padding
)",
               .remedy = "`shardwright explain` with the loader's error message lists likely "
                         "causes. If the configuration is wrong, change it, not the checkpoint.",
               .link = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5353"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kLoadFails,
    .repaired_by = RepairedBy::kTiles,
    .run = find_shape_mismatches,
};

}  // namespace shw
