#include "core/rules/names/half_adapters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// "lora_unet_x.lora_down.weight" and "lora_unet_x.lora_up.weight" of kohya's scripts, and
// diffusers' older "to_q.lora.down.weight" and "to_q_lora.down.weight".
std::optional<std::string> opposite_direction(std::string_view fqn) {
  constexpr auto kPairs = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{".lora_down.", ".lora_up."}, {"lora.down.", "lora.up."}});
  for (const auto& [down, up] : kPairs) {
    for (const auto& [from, to] : {std::pair(down, up), std::pair(up, down)}) {
      const std::size_t at = fqn.rfind(from);
      if (at == std::string_view::npos) continue;
      return std::string(fqn.substr(0, at)) + std::string(to) +
             std::string(fqn.substr(at + from.size()));
    }
  }
  return std::nullopt;
}

// LoHa's, LoKr's, VeRA's and RandLora's parameters: "…q_proj.hada_w1_a" and "…q_proj.hada_w1_b".
// LoKr may save a factor whole, as "lokr_w1", which has no other half.
std::optional<std::string> opposite_factor(std::string_view fqn) {
  constexpr auto kPairs = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{".hada_w1_a", ".hada_w1_b"},
       {".hada_w2_a", ".hada_w2_b"},
       {".lokr_w1_a", ".lokr_w1_b"},
       {".lokr_w2_a", ".lokr_w2_b"},
       {".vera_lambda_b", ".vera_lambda_d"},
       {".randlora_lambda", ".randlora_gamma"}});
  for (const auto& [first, second] : kPairs) {
    for (const auto& [from, to] : {std::pair(first, second), std::pair(second, first)}) {
      if (fqn.ends_with(from))
        return std::string(fqn.substr(0, fqn.size() - from.size())) + std::string(to);
    }
  }
  return std::nullopt;
}

// "A" for "B"; mlx, torchtune and GGUF write small letters. '\0' for other letters.
char opposite_letter(char letter) {
  constexpr std::string_view kLetters = "ABab", kOthers = "BAba";
  const std::size_t at = kLetters.find(letter);
  return at == std::string_view::npos ? '\0' : kOthers[at];
}

// "…q_proj.lora_A.weight" and "…q_proj.lora_B.weight"
std::optional<std::string> opposite_matrix(std::string_view fqn) {
  constexpr auto kStems = std::to_array<std::string_view>({".lora_", ".lora_embedding_"});
  // With lora_bias only B has one.
  if (parse_state_fqn(fqn) || fqn.ends_with(".bias")) return std::nullopt;
  if (auto other = opposite_direction(fqn)) return other;
  if (auto other = opposite_factor(fqn)) return other;
  for (std::string_view stem : kStems) {
    const std::size_t letter = fqn.rfind(stem) + stem.size();
    if (fqn.rfind(stem) == std::string_view::npos || letter >= fqn.size()) continue;
    const bool ends = letter + 1 == fqn.size() || fqn[letter + 1] == '.';
    if (!ends || opposite_letter(fqn[letter]) == '\0') continue;
    std::string other(fqn);
    other[letter] = opposite_letter(fqn[letter]);
    return other;
  }
  return std::nullopt;
}

bool is_first_of_pair(std::string_view fqn, std::string_view other) {
  // "lora_A" before "lora_B", "lora_down" before "lora_up".
  return fqn < other;
}

// A is [rank, inputs] and B [outputs, rank]; mlx has both transposed.
bool are_of_one_rank(ExtentsView a, ExtentsView b) {
  return a[0] == b[1] || a[1] == b[0];
}

// Reports matrices of a pair with different ranks, where all other pairs agree.
void find_unequal_ranks(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::size_t agreeing = 0;
  std::vector<std::string> subjects;
  std::string example;
  for (TensorId tensor : each_tensor(facts)) {
    const auto name = opposite_matrix(c.fqn(tensor));
    const auto other =
        name && is_first_of_pair(c.fqn(tensor), *name) ? c.find(*name) : std::nullopt;
    if (!other || opposite_factor(c.fqn(tensor))) continue;
    const ExtentsView a = c.shape(tensor), b = c.shape(*other);
    if (a.size() != 2 || b.size() != 2) continue;
    if (are_of_one_rank(a, b)) {
      ++agreeing;
      continue;
    }
    if (example.empty())
      example = fmt::format("{} is {}, and {} is {}", c.fqn(tensor), to_text(a), *name, to_text(b));
    subjects.emplace_back(c.fqn(tensor));
    subjects.push_back(*name);
  }
  if (subjects.empty() || agreeing < subjects.size() / 2) return;
  const std::size_t pairs = subjects.size() / 2;
  Finding finding;
  finding.rule = kHalfPair.id;
  finding.severity = Severity::kError;
  finding.cause = fmt::format(
      "The two matrices of {} have different ranks, so they cannot be multiplied: {}. They are of "
      "two adapters, or one was cut.",
      plural(pairs, "pair"), example);
  finding.evidence = {{"count", count_of(pairs)}, {"with_both", count_of(agreeing)}};
  finding.subjects = std::move(subjects);
  findings.push_back(std::move(finding));
}

}  // namespace

void find_half_adapters(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  find_unequal_ranks(facts, findings);
  std::size_t whole = 0;
  std::vector<std::string> halves, missing;
  for (TensorId tensor : each_tensor(facts)) {
    auto other = opposite_matrix(c.fqn(tensor));
    if (!other) continue;
    if (c.find(*other)) {
      ++whole;
      continue;
    }
    halves.emplace_back(c.fqn(tensor));
    missing.push_back(std::move(*other));
  }
  // Some adapter types share matrices or have only one: then all pairs are incomplete by design.
  if (halves.empty() || halves.size() * 2 > whole) return;
  Finding finding;
  finding.rule = kHalfPair.id;
  finding.severity = Severity::kWarning;
  finding.cause = fmt::format(
      "Of {} both halves are here, and of {} one of the two: {} {} missing. Loaders go on "
      "without it, and what was learned there is gone without an error.",
      plural(whole / 2, "pair"), human_count(halves.size()), some_of(missing),
      missing.size() == 1 ? "is" : "are");
  finding.evidence = {{"missing", capped(missing)},
                      {"count", count_of(missing.size())},
                      {"with_both", count_of(whole / 2)}};
  finding.subjects = std::move(halves);
  findings.push_back(std::move(finding));
}

}  // namespace shw
