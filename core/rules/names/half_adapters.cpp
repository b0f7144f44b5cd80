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
std::optional<std::string> other_direction(std::string_view fqn) {
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
std::optional<std::string> other_factor(std::string_view fqn) {
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

// "…q_proj.lora_A.weight" and "…q_proj.lora_B.weight"
std::optional<std::string> other_matrix(std::string_view fqn) {
  constexpr auto kStems = std::to_array<std::string_view>({".lora_", ".lora_embedding_"});
  // With lora_bias only B has one.
  if (parse_state_fqn(fqn) || fqn.ends_with(".bias")) return std::nullopt;
  if (auto other = other_direction(fqn)) return other;
  if (auto other = other_factor(fqn)) return other;
  for (std::string_view stem : kStems) {
    const std::size_t letter = fqn.rfind(stem) + stem.size();
    if (fqn.rfind(stem) == std::string_view::npos || letter >= fqn.size()) continue;
    const bool ends = letter + 1 == fqn.size() || fqn[letter + 1] == '.';
    if (!ends || (fqn[letter] != 'A' && fqn[letter] != 'B')) continue;
    std::string other(fqn);
    other[letter] = fqn[letter] == 'A' ? 'B' : 'A';
    return other;
  }
  return std::nullopt;
}

}  // namespace

void find_half_adapters(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::size_t whole = 0;
  std::vector<std::string> halves, missing;
  for (TensorId tensor : each_tensor(facts)) {
    auto other = other_matrix(c.fqn(tensor));
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
