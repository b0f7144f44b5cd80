#include "core/facts/names/expert_family.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/checked.h"

namespace shw {
namespace {

using Role = FamilyName::Member;
constexpr std::array<std::pair<std::string_view, Role>, 9> kMembers = {{
    {"gate_proj", Role::kGate},
    {"up_proj", Role::kUp},
    {"down_proj", Role::kDown},
    {"gate_projs", Role::kGate},
    {"up_projs", Role::kUp},
    {"down_projs", Role::kDown},
    {"w1", Role::kGate},
    {"w3", Role::kUp},
    {"w2", Role::kDown},
}};

void add(Families& families, std::string_view fqn, ExtentsView shape) {
  if (shape.size() != 3) return;
  auto name = family_name(fqn);
  if (!name) return;
  ExpertFamily& family = families[name->key];
  auto& member = name->member == Role::kGate ? family.gate
                 : name->member == Role::kUp ? family.up
                                             : family.down;
  member = copy_of(shape);
}

std::optional<std::int64_t> exact_root(std::int64_t square) {
  if (square < 1) return std::nullopt;
  auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(square))));
  return checked_mul(root, root) == square ? std::optional(root) : std::nullopt;
}

// The k with a = k * k * d; nullopt if there is none.
std::optional<std::int64_t> square_factor(std::int64_t a, std::int64_t d) {
  if (d <= 0 || a % d != 0) return std::nullopt;
  auto root = exact_root(a / d);
  return root && *root >= 2 ? root : std::nullopt;
}

// Integers, of which several may hold more numbers, or fewer, than the weight has.
bool is_packed(Dtype dtype) {
  return dtype == Dtype::kUint8 || dtype == Dtype::kInt8 || dtype == Dtype::kInt32 ||
         dtype == Dtype::kUint32;
}

// A scale or a zero point has one element per group: [E, I, H / 64] is not a member of a family.
bool is_quantiser_companion(std::string_view fqn) {
  const std::string_view last = fqn.substr(fqn.rfind('.') + 1);
  return last.find("scale") != last.npos || last.find("zero") != last.npos || last == "biases";
}

// The dim with the hidden size: 0 for norms, 1 for embeddings and heads.
std::optional<std::size_t> hidden_dim(std::string_view fqn) {
  for (std::string_view end : {"embed_tokens.weight", "word_embeddings.weight",
                               "tok_embeddings.weight", "wte.weight", "lm_head.weight"}) {
    if (fqn.ends_with(end)) return 1;
  }
  for (std::string_view end :
       {"input_layernorm.weight", "post_attention_layernorm.weight", "final_layernorm.weight",
        "attention_norm.weight", "ffn_norm.weight"}) {
    if (fqn.ends_with(end)) return 0;
  }
  if (fqn == "norm.weight" || fqn.ends_with("model.norm.weight")) return 0;
  return std::nullopt;
}

}  // namespace

std::optional<FamilyName> family_name(std::string_view fqn) {
  // The last part that names a member; ".weight", ".weight.exp_avg" etc. follow.
  for (std::size_t end = fqn.size(); end > 0;) {
    std::size_t dot = fqn.rfind('.', end - 1);
    std::size_t start = dot == std::string_view::npos ? 0 : dot + 1;
    std::string_view part = fqn.substr(start, end - start);
    for (const auto& [word, member] : kMembers) {
      if (part != word) continue;
      std::string key(fqn.substr(0, start));
      return FamilyName{member, key + "*" + std::string(fqn.substr(end))};
    }
    if (dot == std::string_view::npos) break;
    end = dot;
  }
  return std::nullopt;
}

Families families_of(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  Families families;
  for (TensorId tensor : each_tensor(input)) {
    if (!is_packed(c.dtype(tensor)) && !is_quantiser_companion(c.fqn(tensor)))
      add(families, c.fqn(tensor), c.shape(tensor));
  }
  return families;
}

Families families_of(const Spec& spec) {
  Families families;
  for (const auto& [fqn, entry] : spec.entries) add(families, fqn, entry.shape);
  return families;
}

std::optional<HiddenSize> hidden_size(const CheckInput& input) {
  const Checkpoint& checkpoint = input.checkpoint;
  std::optional<HiddenSize> found;
  for (TensorId tensor : each_tensor(input)) {
    std::string_view fqn = checkpoint.fqn(tensor);
    auto dim = hidden_dim(fqn);
    ExtentsView shape = checkpoint.shape(tensor);
    if (!dim || shape.size() != *dim + 1 || is_packed(checkpoint.dtype(tensor))) continue;
    if (!found) found = HiddenSize{shape[*dim], std::string(fqn)};
    // Unknown, because two tensors disagree (an image tower and the text model).
    if (found->size != shape[*dim]) return std::nullopt;
  }
  return found;
}

FamilyJudgement judge(const ExpertFamily& family, std::optional<std::int64_t> hidden) {
  using State = FamilyJudgement::State;
  const auto& wide = family.gate ? family.gate : family.up;
  if (!wide || !family.down) return {};
  if (family.gate && family.up && *family.gate != *family.up) return {};
  std::int64_t experts = (*wide)[0], a = (*wide)[1], b = (*wide)[2];
  std::int64_t c = (*family.down)[1], d = (*family.down)[2];
  if (experts != (*family.down)[0] || b <= 0 || d <= 0) return {};
  if (a == d && b == c) {
    // [E, I, H] and [E, H, I] or vice versa; impossible for a moved family.
    return {State::kHasExpectedSizes, 1, hidden && (*hidden == b || *hidden == a)};
  }
  auto factor = square_factor(a, d);
  if (!factor || factor != square_factor(c, b)) return {};
  if (hidden) {
    // If the gate is correct, only `down` moved, by the square of the factor.
    bool agrees =
        checked_mul(b, *factor) == *hidden || (checked_mul(*hidden, *factor) == a && b != *hidden);
    return agrees ? FamilyJudgement{State::kMoved, *factor, true} : FamilyJudgement{};
  }
  // Both in layout [E, I, H]: I = 4 H would look like a factor of 2.
  if (a == c && b == d) return {};
  return {State::kMoved, *factor, false};
}

}  // namespace shw
