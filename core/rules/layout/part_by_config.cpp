#include "core/rules/layout/part_by_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/layout/padding.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Vocabularies are padded to a multiple of this per rank (Megatron: 128, others: 64, 16).
constexpr std::int64_t kPaddedTo = 16;
constexpr std::int64_t kMaxPadding = 512;  // rows per rank
constexpr std::int64_t kMaxParts = 1024;

bool is_contradiction_about_key(const SizeContradiction& one, std::string_view key) {
  return std::find(one.keys.begin(), one.keys.end(), key) != one.keys.end();
}

// Number of parts if `saved` is one equal part of `said`; vocabularies are padded first.
std::optional<std::int64_t> parts_of(std::int64_t saved, std::int64_t said, bool is_vocabulary) {
  if (saved < 1 || saved >= said) return std::nullopt;
  const std::int64_t parts = said / saved + (said % saved != 0 ? 1 : 0);
  if (parts < 2 || parts > kMaxParts) return std::nullopt;
  const bool is_even = said % saved == 0;
  // If the vocabulary grew by a few rows in the config only, the saved rows are not one part of it:
  // 32,000 rows are not half of 64,000 padded from 32,002.
  const std::int64_t padding = saved * parts - said;
  const bool is_padded = is_vocabulary && saved % kPaddedTo == 0 && padding < saved / 2 &&
                         padding / parts < kMaxPadding;
  return is_even || is_padded ? std::optional(parts) : std::nullopt;
}

struct Parts {
  std::int64_t ranks = 0;
  std::vector<std::string> subjects, lines;
};

// Collects pairs of expected and smaller saved sizes; gives up if one is not a
// part.
class PartsFound {
 public:
  explicit PartsFound(const Checkpoint& c) : c_(c) {}

  // `words`: text about the source of `said`. False if the number of parts differs from earlier
  // pairs.
  bool add(TensorId tensor, std::size_t axis, std::int64_t said, bool is_vocabulary,
           const std::string& words) {
    const ExtentsView shape = c_.shape(tensor);
    const auto ranks = parts_of(shape[axis], said, is_vocabulary);
    if (!ranks || (parts_.ranks != 0 && parts_.ranks != *ranks)) return false;
    parts_.ranks = *ranks;
    const std::int64_t whole = shape[axis] * *ranks;
    parts_.subjects.emplace_back(c_.fqn(tensor));
    parts_.lines.push_back(fmt::format("{} {}: {} x {} = {}{} ({})", c_.fqn(tensor), to_text(shape),
                                       *ranks, shape[axis], whole, whole == said ? "" : ", padded",
                                       words));
    return true;
  }
  std::optional<Parts> release_findings() && {
    return parts_.subjects.empty() ? std::nullopt : std::optional(std::move(parts_));
  }

 private:
  const Checkpoint& c_;
  Parts parts_;
};

// All contradictions must be parts of the same number of ranks. Norm vectors are whole on every
// tensor-parallel rank: if one differs, the config is of another model.
std::optional<Parts> tensor_parts_by_config(const Checkpoint& c,
                                            const std::vector<SizeContradiction>& sizes) {
  PartsFound found(c);
  for (const SizeContradiction& one : sizes) {
    if (one.only_more_rows) return std::nullopt;
    for (const auto& [tensor, axis] : one.tensors) {
      if (c.shape(tensor).size() < 2 ||
          !found.add(tensor, axis, one.said, is_contradiction_about_key(one, "vocab_size"),
                     one.words))
        return std::nullopt;
    }
  }
  // A tensor-parallel rank has parts of heads, feed-forward network and vocabulary; a single
  // deviating size other than a vocabulary suggests another model.
  if (sizes.size() == 1 && !is_contradiction_about_key(sizes.front(), "vocab_size"))
    return std::nullopt;
  return std::move(found).release_findings();
}

// Like tensor_parts_by_config(), from a spec or reference: each deviating tensor has one dimension
// that is a part.
std::optional<Parts> tensor_parts_by_spec(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  PartsFound found(c);
  std::size_t matrices = 0;
  for (TensorId tensor : each_tensor(facts)) {
    const SpecEntry* entry = facts.spec->find(c.fqn(tensor));
    const ExtentsView shape = c.shape(tensor);
    if (entry == nullptr || same(shape, entry->shape)) continue;
    if (shape.size() != entry->shape.size()) return std::nullopt;
    std::optional<std::size_t> axis;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == entry->shape[d]) continue;
      if (axis) return std::nullopt;
      axis = d;
    }
    const bool is_vocabulary = *axis == 0 && has_vocabulary_rows(entry->role, c.fqn(tensor));
    matrices += shape.size() > 1 ? 1 : 0;
    if (!found.add(tensor, *axis, entry->shape[*axis], is_vocabulary,
                   to_text(entry->shape) + " is expected"))
      return std::nullopt;
  }
  // A single tensor may be of another model or shape.
  return matrices < 2 ? std::nullopt : std::move(found).release_findings();
}

}  // namespace

void find_parts_by_config(const Facts& facts, std::vector<Finding>& findings) {
  if (!facts.checkpoint.format().traits.has_one_piece_per_tensor) return;
  std::optional<Parts> parts;
  if (facts.spec != nullptr)
    parts = tensor_parts_by_spec(facts);
  else if (facts.config_fit)
    parts = tensor_parts_by_config(facts.checkpoint, facts.config_fit->sizes);
  if (!parts) return;
  Finding finding{.rule = std::string(kLocalSavedAsGlobal.id)};
  const std::size_t count = parts->subjects.size();
  finding.cause = fmt::format(
      "{} {} the part of one rank of {}: {}. One rank's state dict was published as the full "
      "model; the other ranks' parts are missing.",
      count == 1 ? parts->subjects.front() : plural(count, "tensor"), count == 1 ? "is" : "are",
      parts->ranks, short_list_text(parts->lines, 2));
  finding.evidence = {
      {"ranks", parts->ranks},
      {"tensors", capped(parts->lines)},
      {"count", count_of(count)},
      {"what_to_do", std::string("gather the tensor-parallel ranks before exporting: their files "
                                 "hold the other rows")}};
  finding.subjects = std::move(parts->subjects);
  findings.push_back(std::move(finding));
}

}  // namespace shw
