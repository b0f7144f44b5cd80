#include "core/facts/names/quant_families.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include "core/base/parse_text.h"

namespace shw {
namespace {

bool is_scheme_of_method(const QuantScheme& scheme, std::string_view method) {
  return is_one_of(method, split_at(scheme.methods, '|'));
}

bool is_declared_method(const QuantScheme& scheme, const std::optional<QuantConfig>& config) {
  return config && is_scheme_of_method(scheme, config->method);
}

bool is_companion_ending(const QuantScheme& scheme, std::string_view fqn) {
  for (const QuantCompanion& companion : scheme.companions) {
    for (std::string_view ending : split_at(companion.endings, '|')) {
      if (fqn.ends_with(ending)) return true;
    }
  }
  return false;
}

QuantPair make_quant_pair(const Checkpoint& c, const QuantScheme& scheme, TensorId weight) {
  QuantPair pair{weight, std::string(c.fqn(weight)), {}, {}};
  pair.stem.resize(pair.stem.size() - scheme.weight.size());
  for (const QuantCompanion& companion : scheme.companions) {
    std::optional<TensorId> found;
    std::string_view under;
    for (std::string_view ending : split_at(companion.endings, '|')) {
      auto there = found ? std::nullopt : c.find(pair.stem + std::string(ending));
      if (!there) continue;
      found = there;
      under = ending;
    }
    pair.beside.push_back(found);
    pair.ending.push_back(under);
  }
  return pair;
}

bool can_be_weight(const CheckInput& input, const QuantScheme& scheme, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  const std::string_view fqn = c.fqn(tensor);
  if (!fqn.ends_with(scheme.weight) || (scheme.weight.empty() && fqn.ends_with(".weight")))
    return false;
  const auto chunks = c.chunks(tensor);
  const bool has_codec =
      scheme.codec.empty() || (!chunks.empty() && c.codec(*chunks.begin()).name == scheme.codec);
  return has_codec && !parse_state_fqn(fqn) && scheme.is_weight(c.dtype(tensor), c.shape(tensor)) &&
         !is_companion_ending(scheme, fqn);
}

// Per companion the dtype that three of four weights have; nullopt if there is none.
std::vector<std::optional<Dtype>> usual_dtypes(const Checkpoint& c, const QuantFamily& family) {
  std::vector<std::optional<Dtype>> usual;
  for (std::size_t k = 0; k < family.scheme->companions.size(); ++k) {
    std::map<Dtype, std::size_t> counts;
    std::size_t all = 0;
    for (const QuantPair& pair : family.pairs) {
      if (!pair.beside[k]) continue;
      ++counts[c.dtype(*pair.beside[k])];
      ++all;
    }
    usual.emplace_back();
    for (const auto& [dtype, count] : counts)
      if (count * 4 >= all * 3) usual.back() = dtype;
  }
  return usual;
}

// A scheme is in use if a weight has its marker or the config names it. If only its scale
// distinguishes a weight, it belongs to the scheme of that scale; without companions, to the first
// scheme in use.
QuantFamily family_of(const CheckInput& input, const QuantScheme& scheme, bool is_said,
                      const std::set<TensorId>& taken) {
  const Checkpoint& c = input.checkpoint;
  QuantFamily family{&scheme, is_said, {}, {}, {}};
  std::vector<QuantPair> without_any;
  std::size_t marked = 0, of_others = 0;
  for (TensorId tensor : each_tensor(input)) {
    if (taken.contains(tensor) || !can_be_weight(input, scheme, tensor)) continue;
    QuantPair pair = make_quant_pair(c, scheme, tensor);
    const bool has_any = std::any_of(pair.beside.begin(), pair.beside.end(),
                                     [](const auto& one) { return one.has_value(); });
    const bool has_marker =
        scheme.marker.empty() || c.find(pair.stem + std::string(scheme.marker)).has_value();
    if (scheme.needs_marker && !has_marker) continue;
    if (scheme.is_of_scale != nullptr && !has_any) {
      without_any.push_back(std::move(pair));
      continue;
    }
    if (scheme.is_of_scale != nullptr && pair.beside[0] &&
        !scheme.is_of_scale(c, tensor, *pair.beside[0])) {
      ++of_others;
      continue;
    }
    marked += has_marker && has_any ? 1 : 0;
    family.pairs.push_back(std::move(pair));
  }
  if (marked > 0 || (is_said && of_others == 0 && !scheme.marker.empty()))
    std::ranges::move(without_any, std::back_inserter(family.pairs));
  if (marked == 0 && !is_said) family.pairs.clear();
  family.usual_dtypes = usual_dtypes(c, family);
  return family;
}

// True for name suffixes that only quantised checkpoints have.
bool is_quantised_only_suffix(std::string_view ending) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".weight_scale_inv", ".qzeros", ".weight.quant_map", ".SCB", ".weight_scale_2"});
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

// Suffixes that other tensors have too: logit_scale of CLIP, the scale of a norm.
bool is_common_ending(std::string_view ending) {
  return ending == ".scale" || ending == "_scale";
}

void add_orphans(const CheckInput& input, const std::set<TensorId>& taken, QuantFamily& family) {
  const Checkpoint& c = input.checkpoint;
  for (TensorId tensor : each_tensor(input)) {
    const std::string_view fqn = c.fqn(tensor);
    for (const QuantCompanion& companion : family.scheme->companions) {
      if (companion.need != CompanionNeed::kAlways) continue;
      for (std::string_view ending : split_at(companion.endings, '|')) {
        const bool can_tell =
            !family.pairs.empty() || family.is_said || is_quantised_only_suffix(ending);
        if (!can_tell || is_common_ending(ending) || !fqn.ends_with(ending) ||
            fqn.size() == ending.size())
          continue;
        std::string weight(fqn.substr(0, fqn.size() - ending.size()));
        weight += family.scheme->weight;
        const auto there = c.find(weight);
        const bool is_weight = there && family.scheme->is_weight(c.dtype(*there), c.shape(*there));
        const bool is_taken = there && taken.contains(*there);
        if (!is_weight && !is_taken) family.orphans.push_back({tensor, std::move(weight), there});
      }
    }
  }
}

}  // namespace

bool is_named_for_other_method(const QuantFamily& family, std::string_view method) {
  constexpr auto kForms =
      std::to_array<QuantForm>({QuantForm::kGrouped, QuantForm::kNf, QuantForm::kInt8Rows,
                                QuantForm::kMlx, QuantForm::kHqq});
  const bool is_unmistakable = std::ranges::find(kForms, family.scheme->form) != kForms.end();
  return is_unmistakable && !is_scheme_of_method(*family.scheme, method) &&
         std::ranges::any_of(quant_schemes(), [&](const QuantScheme& scheme) {
           return is_scheme_of_method(scheme, method);
         });
}

bool stores_codes_as_floats(const Checkpoint& checkpoint, TensorId tensor) {
  const ExtentsView shape = checkpoint.shape(tensor);
  if (shape.size() != 2 || shape[1] != 1 ||
      !is_allowed_dtype(checkpoint.dtype(tensor), CompanionDtypes::kFloats))
    return false;
  const std::string state = std::string(checkpoint.fqn(tensor)) + ".quant_state.bitsandbytes__";
  return checkpoint.find(state + "nf4").has_value() || checkpoint.find(state + "fp4").has_value();
}

std::vector<QuantFamily> quant_families(const CheckInput& input,
                                        const std::optional<QuantConfig>& config) {
  std::vector<QuantFamily> families;
  std::set<TensorId> taken;
  for (const QuantScheme& scheme : quant_schemes()) {
    const bool is_said = is_declared_method(scheme, config);
    if (scheme.needs_config && !is_said) continue;
    QuantFamily family = family_of(input, scheme, is_said, taken);
    for (const QuantPair& pair : family.pairs) taken.insert(pair.weight);
    families.push_back(std::move(family));
  }
  std::set<TensorId> told;  // reported or already paired in any scheme
  for (const QuantFamily& family : families) {
    for (const QuantPair& pair : family.pairs)
      for (const auto& one : pair.beside)
        if (one) told.insert(*one);
  }
  for (QuantFamily& family : families) {
    add_orphans(input, taken, family);
    std::erase_if(family.orphans,
                  [&](const auto& orphan) { return !told.insert(orphan.companion).second; });
  }
  std::erase_if(families, [](const QuantFamily& family) {
    return family.pairs.empty() && family.orphans.empty();
  });
  return families;
}

}  // namespace shw
