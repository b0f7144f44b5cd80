#include "core/rules/names/half_adapters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/names/adapter_weights.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// True if the part of the name that ends before `end` names LoRA: "to_q_lora", "qkv_lora1".
bool has_lora_in_name_part(std::string_view fqn, std::size_t end) {
  const std::string_view before = fqn.substr(0, end);
  return before.substr(before.rfind('.') + 1).find("lora") != std::string_view::npos;
}

// "lora_unet_x.lora_down.weight" and "lora_unet_x.lora_up.weight" of kohya's scripts, diffusers'
// older "to_q.lora.down.weight" and "to_q_lora.down.weight", XLabs' "qkv_lora1.down.weight".
std::optional<std::string> opposite_direction(std::string_view fqn) {
  constexpr auto kPairs = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{".lora_down.", ".lora_up."}, {".down.", ".up."}});
  for (const auto& [down, up] : kPairs) {
    for (const auto& [from, to] : {std::pair(down, up), std::pair(up, down)}) {
      const std::size_t at = fqn.rfind(from);
      if (at == std::string_view::npos) continue;
      if (down == ".down." && !has_lora_in_name_part(fqn, at)) continue;
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

struct MatrixPair {
  TensorId a{}, b{};
};

// The pairs of matrices, A (lora_down) before B (lora_up).
std::vector<MatrixPair> matrix_pairs(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<MatrixPair> pairs;
  for (TensorId tensor : each_tensor(facts)) {
    const auto name = opposite_matrix(c.fqn(tensor));
    const auto other =
        name && is_first_of_pair(c.fqn(tensor), *name) ? c.find(*name) : std::nullopt;
    if (other && !opposite_factor(c.fqn(tensor)) && c.shape(tensor).size() == 2 &&
        c.shape(*other).size() == 2)
      pairs.push_back({tensor, *other});
  }
  return pairs;
}

// Reports matrices of a pair with different ranks, where other pairs agree. A is [rank, inputs] and
// B [outputs, rank]; mlx has both transposed. Most A tell, because a rank is nearly always the
// smaller size: in a square module the other sizes are equal whatever the ranks.
void find_unequal_ranks(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const std::vector<MatrixPair> pairs = matrix_pairs(facts);
  const auto fits = [&](const MatrixPair& pair, bool is_transposed) {
    const ExtentsView a = c.shape(pair.a), b = c.shape(pair.b);
    return is_transposed ? a[1] == b[0] : a[0] == b[1];
  };
  const bool is_plain = std::all_of(pairs.begin(), pairs.end(),
                                    [&](const MatrixPair& pair) { return fits(pair, false); });
  if (is_plain) return;
  const auto tall = std::count_if(pairs.begin(), pairs.end(), [&](const MatrixPair& pair) {
    return c.shape(pair.a)[0] > c.shape(pair.a)[1];
  });
  const bool is_transposed = static_cast<std::size_t>(tall) * 2 > pairs.size();
  std::size_t agreeing = 0;
  std::vector<std::string> subjects;
  std::string example;
  for (const MatrixPair& pair : pairs) {
    if (fits(pair, is_transposed)) {
      ++agreeing;
      continue;
    }
    const std::string_view a = c.fqn(pair.a), b = c.fqn(pair.b);
    if (example.empty())
      example = fmt::format("{} is {}, and {} is {}", a, to_text(c.shape(pair.a)), b,
                            to_text(c.shape(pair.b)));
    subjects.emplace_back(a);
    subjects.emplace_back(b);
  }
  if (subjects.empty() || agreeing < subjects.size() / 2) return;
  const std::size_t unequal = subjects.size() / 2;
  Finding finding{.rule = std::string(kHalfPair.id), .severity = Severity::kError};
  finding.cause = fmt::format(
      "The two matrices of {} have different ranks, so they cannot be multiplied: {}. They come "
      "from two adapters, or one was truncated.",
      plural(unequal, "pair"), example);
  finding.evidence = {{"count", count_of(unequal)}, {"with_both", count_of(agreeing)}};
  finding.subjects = std::move(subjects);
  findings.push_back(std::move(finding));
}

// The module of an adapter's first matrix in kohya's form; nullopt for other tensors.
std::optional<std::string_view> adapter_module_of(std::string_view fqn) {
  for (const std::string_view end :
       {".lora_down.weight", ".lora_A.weight", ".hada_w1_a", ".lokr_w1", ".lokr_w1_a"}) {
    if (fqn.ends_with(end)) return fqn.substr(0, fqn.size() - end.size());
  }
  return std::nullopt;
}

// Reports a few modules without alpha, where the others have one: loaders multiply such a module
// by 1 in place of alpha / rank.
void find_lost_alphas(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::size_t with = 0;
  std::vector<std::string> subjects, missing;
  for (TensorId tensor : each_tensor(facts)) {
    const auto module = adapter_module_of(c.fqn(tensor));
    if (!module) continue;
    std::string alpha = std::string(*module) + ".alpha";
    if (c.find(alpha)) {
      ++with;
      continue;
    }
    subjects.emplace_back(c.fqn(tensor));
    missing.push_back(std::move(alpha));
  }
  if (missing.empty() || missing.size() * 4 > with) return;
  Finding finding{.rule = std::string(kHalfPair.id), .severity = Severity::kWarning};
  finding.cause = fmt::format(
      "{} of the adapter have an alpha, and {} more {} none: {}. Loaders scale such a module by 1 "
      "instead of alpha / rank, without an error.",
      plural(with, "module"), human_count(missing.size()), missing.size() == 1 ? "has" : "have",
      short_list_text(missing));
  finding.evidence = {{"missing", capped(missing)}, {"count", count_of(missing.size())}};
  finding.subjects = std::move(subjects);
  findings.push_back(std::move(finding));
}

// Reports modules of LoKr with one of the two factors. PEFT's are reported with its config
// (tuned_parameters.h).
void find_lost_factors(const Facts& facts, std::vector<Finding>& findings) {
  if (opened_adapter_file(facts.checkpoint)) return;
  LokrHalves found = lokr_halves(facts);
  if (found.missing.empty()) return;
  Finding finding{.rule = std::string(kHalfPair.id), .severity = Severity::kWarning};
  finding.cause = fmt::format(
      "{} of {} in this LoKr adapter {} only one of two factors: {} {} missing. What the adapter "
      "adds to a weight is the product of both, so it cannot be computed there.",
      human_count(found.missing.size()), plural(found.modules, "module"),
      found.missing.size() == 1 ? "has" : "have", short_list_text(found.missing),
      found.missing.size() == 1 ? "is" : "are");
  finding.evidence = {{"missing", capped(found.missing)},
                      {"count", count_of(found.missing.size())}};
  for (TensorId half : found.halves) finding.subjects.emplace_back(facts.checkpoint.fqn(half));
  findings.push_back(std::move(finding));
}

}  // namespace

LokrHalves lokr_halves(const Facts& facts) {
  constexpr std::string_view kFactor = ".lokr_w";
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string_view, std::array<std::optional<TensorId>, 2>> modules;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    const std::size_t at = fqn.rfind(kFactor);
    if (at == std::string_view::npos) continue;
    const std::string_view number = fqn.substr(at + kFactor.size());
    if (number.starts_with('1') || number.starts_with('2'))
      modules[fqn.substr(0, at)][number.starts_with('1') ? 0 : 1] = tensor;
  }
  LokrHalves out{.modules = modules.size()};
  for (const auto& [module, factors] : modules) {
    if (factors[0].has_value() == factors[1].has_value()) continue;
    out.halves.push_back(factors[0] ? *factors[0] : *factors[1]);
    out.missing.push_back(std::string(module) + (factors[0] ? ".lokr_w2" : ".lokr_w1"));
  }
  return out;
}

void find_half_adapters(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  find_unequal_ranks(facts, findings);
  find_lost_alphas(facts, findings);
  find_lost_factors(facts, findings);
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
  Finding finding{.rule = std::string(kHalfPair.id), .severity = Severity::kWarning};
  finding.cause = fmt::format(
      "Of {} both matrices are here, but of {} only one: {} {} missing. Loaders continue without "
      "it, so that training is lost without an error.",
      plural(whole / 2, "pair"), human_count(halves.size()), short_list_text(missing),
      missing.size() == 1 ? "is" : "are");
  finding.evidence = {{"missing", capped(missing)},
                      {"count", count_of(missing.size())},
                      {"with_both", count_of(whole / 2)}};
  finding.subjects = std::move(halves);
  findings.push_back(std::move(finding));
}

}  // namespace shw
