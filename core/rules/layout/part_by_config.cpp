#include "core/rules/layout/part_by_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "core/base/words.h"
#include "core/facts/evidence.h"

namespace shw {
namespace {

// Vocabularies are padded to a multiple of this for every rank (Megatron: 128, others: 64, 16).
constexpr std::int64_t kPaddedTo = 16;
constexpr std::int64_t kMostParts = 1024;

bool is_of_key(const SizeContradiction& one, std::string_view key) {
  return std::find(one.keys.begin(), one.keys.end(), key) != one.keys.end();
}

// In how many equal parts `said` is cut where one of them is `saved`; of a vocabulary padded first.
std::optional<std::int64_t> parts_of(std::int64_t saved, std::int64_t said, bool is_vocabulary) {
  if (saved < 1 || saved >= said) return std::nullopt;
  const std::int64_t parts = said / saved + (said % saved != 0 ? 1 : 0);
  if (parts < 2 || parts > kMostParts) return std::nullopt;
  const bool is_even = said % saved == 0;
  const bool is_padded = is_vocabulary && saved % kPaddedTo == 0;
  return is_even || is_padded ? std::optional(parts) : std::nullopt;
}

struct Parts {
  std::int64_t ranks = 0;
  std::vector<std::string> subjects, lines;
};

// Every contradiction is a part of the same number of ranks, or nothing.
std::optional<Parts> parts_by_config(const Checkpoint& c,
                                     const std::vector<SizeContradiction>& sizes) {
  Parts out;
  for (const SizeContradiction& one : sizes) {
    if (one.only_more_rows) return std::nullopt;
    const bool is_vocabulary = is_of_key(one, "vocab_size");
    for (const auto& [tensor, axis] : one.tensors) {
      const ExtentsView shape = c.shape(tensor);
      const auto parts = parts_of(shape[axis], one.said, is_vocabulary);
      if (!parts || (out.ranks != 0 && out.ranks != *parts)) return std::nullopt;
      out.ranks = *parts;
      out.subjects.emplace_back(c.fqn(tensor));
      const std::int64_t whole = shape[axis] * *parts;
      const std::string padded =
          whole == one.said
              ? std::string()
              : fmt::format(", padded to {}", human_count(static_cast<std::uint64_t>(whole)));
      out.lines.push_back(fmt::format("{} {}: {} x {} = {}{} ({})", c.fqn(tensor), to_text(shape),
                                      *parts, shape[axis], whole, padded, one.words));
    }
  }
  // A tensor-parallel rank has a part of heads, of the feed-forward network and of the vocabulary;
  // one size alone, but for a vocabulary, is rather another model's.
  const bool is_one_size = sizes.size() == 1 && !is_of_key(sizes.front(), "vocab_size");
  if (out.subjects.empty() || is_one_size) return std::nullopt;
  return out;
}

// A vocabulary alone that is so much smaller may be another model's; matrices of two dimensions
// that nothing else contradicts are not.
bool is_sure(const Checkpoint& c, const std::vector<SizeContradiction>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [&](const SizeContradiction& one) {
    return std::all_of(one.tensors.begin(), one.tensors.end(),
                       [&](const auto& at) { return c.shape(at.tensor).size() > 1; });
  });
}

}  // namespace

void find_parts_by_config(const Facts& facts, std::vector<Finding>& findings) {
  if (!facts.config_fit || facts.spec != nullptr || facts.config_fit->sizes.empty()) return;
  const Checkpoint& c = facts.checkpoint;
  if (!c.format().traits.one_piece || !is_sure(c, facts.config_fit->sizes)) return;
  auto parts = parts_by_config(c, facts.config_fit->sizes);
  if (!parts) return;
  Finding finding;
  finding.rule = "local-saved-as-global";
  const std::size_t count = parts->subjects.size();
  finding.cause = fmt::format(
      "{} {} the part of one rank of {}, by config.json: {}. One rank's state dict was published "
      "as "
      "the whole, and what the other ranks had is not here.",
      count == 1 ? parts->subjects.front() : plural(count, "tensor"), count == 1 ? "is" : "are",
      parts->ranks, some_of(parts->lines, 2));
  finding.evidence = {
      {"ranks", parts->ranks},
      {"tensors", capped(parts->lines)},
      {"count", count_of(count)},
      {"what to do", std::string("gather the tensor-parallel ranks before exporting: their files "
                                 "hold the other rows")}};
  finding.subjects = std::move(parts->subjects);
  findings.push_back(std::move(finding));
}

}  // namespace shw
