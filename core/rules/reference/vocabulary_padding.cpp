// Rows of the vocabulary are padded to a multiple that depends on the tensor-parallel size, so
// checkpoints of different topologies differ in rows. Rows are dropped only if their bytes prove
// padding: zeros, or one row repeated.
#include <fmt/core.h>

#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/padding.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// True if the shapes differ only in the number of rows.
bool differs_in_rows(ExtentsView saved, ExtentsView expected) {
  return saved.size() == expected.size() && !saved.empty() && saved[0] != expected[0] &&
         same(saved.subspan(1), expected.subspan(1)) && saved[0] > 0 && expected[0] > 0;
}

// True if the reference's additional rows are padding as well: all zeros.
bool reference_ends_in_zeros(const Facts& facts, TensorId tensor, std::int64_t rows,
                             ExtentsView expected) {
  auto other = comparable_counterpart(facts, tensor);
  if (!other || !same(facts.reference->shape(*other), expected)) return false;
  return ends_in_padding(*facts.reference, *other, rows, false, facts.progress).value_or(false);
}

struct PaddedRows {
  bool drops = false;
  Finding finding;
};

void add_padding(const Checkpoint& c, TensorId tensor, const SpecEntry& entry, PaddedRows& found) {
  Finding& finding = found.finding;
  if (finding.subjects.empty()) {
    finding.rule = "vocabulary-padding";
    finding.cause = fmt::format(
        "{} has {} rows where the model expects {}: {}", c.fqn(tensor), c.shape(tensor)[0],
        entry.shape[0],
        found.drops ? "the last rows are padding, all equal, as a save with a different "
                      "tensor-parallel size writes them."
                    : "the additional rows of the model are padding, zeros in the reference too.");
    finding.evidence = {{"saved_rows", c.shape(tensor)[0]}, {"expected_rows", entry.shape[0]}};
    finding.remedy =
        found.drops
            ? Remedy{"retile", true, "Drop the padding: no row of the vocabulary is lost."}
            : Remedy{"fill", false,
                     "Add rows of zeros, as the reference has them. They were never saved, so the "
                     "certificate lists them; no row of the vocabulary is lost."};
    finding.link = "Megatron-Bridge #5353";
  }
  finding.subjects.emplace_back(c.fqn(tensor));
  finding.diagnoses.emplace_back(crop_tensor_to_shape(c, tensor, entry.shape));
}

struct MismatchedRows {
  TensorId tensor{};
  const SpecEntry* entry = nullptr;
};

std::vector<MismatchedRows> find_mismatched_rows(const Facts& facts,
                                                 const std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  auto explained = subjects_with_diagnosis(findings);
  std::vector<MismatchedRows> out;
  for (TensorId tensor : each_tensor(facts)) {
    const SpecEntry* entry = facts.spec->find(c.fqn(tensor));
    if (entry == nullptr || !differs_in_rows(c.shape(tensor), entry->shape) ||
        !has_vocabulary_rows(entry->role, c.fqn(tensor)) || explained.contains(c.fqn(tensor)))
      continue;
    if (facts.tilings[index_of(tensor)].tiling == Tiling::kExact) out.push_back({tensor, entry});
  }
  return out;
}

// True if the rows that one side has beyond the other are padding.
bool is_padded(const Facts& facts, const MismatchedRows& one) {
  const Checkpoint& c = facts.checkpoint;
  std::int64_t saved = c.shape(one.tensor)[0], expected = one.entry->shape[0];
  if (saved < expected) return reference_ends_in_zeros(facts, one.tensor, saved, one.entry->shape);
  return ends_in_padding(c, one.tensor, expected, true, facts.progress).value_or(false);
}

Status find_vocabulary_padding(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return {};
  const Checkpoint& c = facts.checkpoint;
  const std::vector<MismatchedRows> asked = find_mismatched_rows(facts, findings);
  if (asked.empty()) return {};
  // Only a few rows of each are read; no slab is larger than this.
  const std::vector<ComparisonCost> costs(asked.size(), {16 << 20, 32 << 20});
  auto find = [&](std::size_t i) -> Result<std::string> {
    return std::string(is_padded(facts, asked[i]) ? "padded" : "");
  };
  SHW_TRY(auto told, map_comparisons(facts, "look for padding", costs, find));
  PaddedRows dropped{true, {}}, added{false, {}};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto& [tensor, entry] = asked[i];
    if (told[i].empty()) continue;
    add_padding(c, tensor, *entry, c.shape(tensor)[0] > entry->shape[0] ? dropped : added);
  }
  for (PaddedRows* found : {&dropped, &added}) {
    if (!found->finding.subjects.empty()) findings.push_back(std::move(found->finding));
  }
  return {};
}

}  // namespace

const Rule kVocabularyPadding = {
    .id = "vocabulary-padding",
    .depth = Depth::kHeaders,
    .title = "The vocabulary is padded to a different number of rows",
    .teaches =
        "Embedding and output layer are padded with rows that no token uses, to a multiple of the "
        "tensor-parallel size, so that every rank has equally many. A different topology pads to a "
        "different number, and the load fails with a size mismatch. Rows may be dropped only if "
        "their bytes show that they are padding: all zeros, or one row repeated. Other rows are "
        "never dropped.",
    .lesson = {.drawing = R"(
  tokens                  ├─ 0 ... 50256 ─┤
  padded to 128 x 1       ├─ 0 ... 50256 ─┼─ 47 rows ──┤   [50304, ...]
  padded to 128 x 8       ├─ 0 ... 50256 ─┼─ 943 rows ───────┤   [51200, ...]
                                           no token uses these
)",
               .remedy = "Load with the padding of the save, or compare with --against. Only rows "
                         "whose bytes show that they are padding may be dropped.",
               .link = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5353"},
    .run_shared = find_vocabulary_padding,
};

}  // namespace shw
