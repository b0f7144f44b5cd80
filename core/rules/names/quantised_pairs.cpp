// Checks quantised weights and their companions (scales, zero points) by scheme.
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/facts.h"
#include "core/facts/names/quant_families.h"
#include "core/model/unread_files.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/names/quant_check.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

bool is_needed(const Checkpoint& c, CompanionNeed need, const QuantPair& pair) {
  if (need != CompanionNeed::kOfBytes && need != CompanionNeed::kOfFloats) return true;
  if (!pair.beside[0]) return false;
  const Dtype dtype = c.dtype(*pair.beside[0]);
  return need == CompanionNeed::kOfBytes ? dtype == Dtype::kUint8 : is_plain_float(dtype);
}

// Why config.json requires this companion, as text; empty if it does not. Some checkpoints of the
// scheme have none of these companions.
std::string_view config_requirement_text(const QuantCheck& check, const QuantFamily& family,
                                         const QuantCompanion& companion) {
  if (!check.config || !family.is_said || check.config->has_overrides) return {};
  const bool is_of_inputs = companion.endings.starts_with(".input_");
  if (is_of_inputs && check.config->has_static_inputs)
    return "that the scales of the inputs are stored (static, not dynamic)";
  if (companion.endings == ".weight_zero_point" && check.config->has_zero_points == true)
    return "symmetric false";
  if (companion.endings.ends_with("g_idx") && check.config->has_group_order == true &&
      check.config->method != "awq")
    return "that groups follow an order (desc_act, actorder)";
  return {};
}

// Weights that lack a companion, of one or several kinds.
struct WithoutCompanion {
  std::vector<std::string> weights = {};
  std::vector<std::string> lacking = {};  // "`weight.absmax`"
  std::string_view asked = {};            // what the config says, if it does
  bool is_scale = false;
};

std::optional<WithoutCompanion> without_companion(const QuantCheck& check,
                                                  const QuantFamily& family, std::size_t k) {
  const QuantCompanion& companion = family.scheme->companions[k];
  if (companion.need == CompanionNeed::kOptional) return std::nullopt;
  const Checkpoint& c = check.facts.checkpoint;
  const bool as_others = companion.need == CompanionNeed::kAsOthers;
  WithoutCompanion out{.lacking = {any_of_endings(companion)}, .is_scale = companion.is_scale};
  for (const QuantPair& pair : family.pairs) {
    // The class of a torchao weight lists its parts, which report_unfit compares.
    if (as_others && check.of_classes.contains(check.fqn(pair.weight))) continue;
    if (is_needed(c, companion.need, pair) && !pair.beside[k])
      out.weights.push_back(check.fqn(pair.weight));
  }
  const std::size_t all = family.pairs.size(), with = all - out.weights.size();
  out.asked = config_requirement_text(check, family, companion);
  if (out.weights.empty() || (as_others && out.asked.empty() && out.weights.size() * 4 > all))
    return std::nullopt;
  // Weights merely stored in few bits have no scale at all.
  if (k == 0 && !family.is_said && with * 4 < all) return std::nullopt;
  return out;
}

// Companions that the same weights lack were lost together, and are one finding.
void report_missing(QuantCheck& check, const QuantFamily& family) {
  std::vector<WithoutCompanion> found;
  for (std::size_t k = 0; k < family.scheme->companions.size(); ++k) {
    auto one = without_companion(check, family, k);
    if (!one) continue;
    const auto same = std::find_if(found.begin(), found.end(), [&](const WithoutCompanion& other) {
      return other.weights == one->weights && other.asked == one->asked;
    });
    if (same == found.end()) {
      found.push_back(std::move(*one));
      continue;
    }
    same->lacking.push_back(std::move(one->lacking.front()));
    same->is_scale = same->is_scale && one->is_scale;
  }
  for (const WithoutCompanion& one : found) {
    std::string cause =
        fmt::format("{} of {} {} no {} ({}).", human_count(one.weights.size()),
                    plural(family.pairs.size(), std::string(family.scheme->title) + " weight"),
                    one.weights.size() == 1 ? "has" : "have", fmt::join(one.lacking, ", no "),
                    short_list_text(one.weights));
    if (!one.asked.empty()) cause += fmt::format(" {} says {}.", check.config->file, one.asked);
    cause += one.is_scale
                 ? " A load fails here, or uses a scale of 1 and the model outputs garbage."
                 : " A loader cannot unpack these weights without " +
                       std::string(one.lacking.size() == 1 ? "it." : "them.");
    check.report(std::move(cause), one.weights, one.weights);
  }
}

// The ending required by the config's method; empty if not given. Without blocks vLLM reads
// `weight_scale` and transformers `weight_scale_inv`.
std::string_view declared_ending(const QuantCheck& check) {
  if (!check.config || check.config->method != "fp8" || !check.config->block) return {};
  return ".weight_scale_inv";
}

void report_endings(QuantCheck& check, const QuantFamily& family, std::size_t k) {
  // HQQ stores the scales of some modules otherwise by its settings.
  if (family.scheme->form == QuantForm::kHqq) return;
  std::map<std::string_view, std::vector<std::size_t>> by_ending;
  for (std::size_t i = 0; i < family.pairs.size(); ++i)
    if (family.pairs[i].beside[k]) by_ending[family.pairs[i].ending[k]].push_back(i);
  if (by_ending.empty()) return;
  const std::string_view said = declared_ending(check);
  const bool is_of_scheme = family.scheme->companions[k].endings.starts_with(said);
  // The suffix that DeepSeek itself uses and that loaders of its models accept.
  constexpr std::string_view kOfDeepSeek = ".scale";
  const bool only_other = !said.empty() && is_of_scheme && by_ending.size() == 1 &&
                          by_ending.begin()->first != said &&
                          by_ending.begin()->first != kOfDeepSeek;
  if (by_ending.size() < 2 && !only_other) return;
  std::string_view usual = by_ending.begin()->first;
  for (const auto& [ending, pairs] : by_ending)
    if (pairs.size() > by_ending.at(usual).size()) usual = ending;
  if (!said.empty() && is_of_scheme) usual = said;
  std::vector<std::string> subjects, words;
  for (const auto& [ending, pairs] : by_ending) {
    words.push_back(fmt::format("{} have it as `{}`", human_count(pairs.size()),
                                ending_without_separator(ending)));
    if (ending == usual) continue;
    for (std::size_t i : pairs) subjects.push_back(check.fqn(*family.pairs[i].beside[k]));
  }
  std::string cause =
      fmt::format("Of {} with a scale {}.",
                  plural(family.pairs.size(), std::string(family.scheme->title) + " weight"),
                  short_list_text(words));
  cause += usual == said ? fmt::format(" config.json's quant_method {} asks for `{}`.",
                                       check.config->method, ending_without_separator(said))
                         : std::string(" A loader asks for one of them.");
  cause += " The others are skipped as unexpected, and their weights are used without a scale.";
  check.report(std::move(cause), subjects, subjects);
}

void report_shapes(QuantCheck& check, const QuantFamily& family, std::size_t k) {
  const QuantCompanion& companion = family.scheme->companions[k];
  if (companion.shape == nullptr) return;
  const Checkpoint& c = check.facts.checkpoint;
  const QuantConfig config = check.config.value_or(QuantConfig{});
  std::vector<std::string> subjects, details;
  for (const QuantPair& pair : family.pairs) {
    if (!pair.beside[k]) continue;
    const ExtentsView shape = c.shape(*pair.beside[k]), weight = c.shape(pair.weight);
    auto expected = companion.shape(settings_of(config, pair.stem), weight, shape);
    if (!expected || same(*expected, shape)) continue;
    subjects.push_back(check.fqn(*pair.beside[k]));
    details.push_back(fmt::format("{} is {}, expected {} for {} {}", subjects.back(),
                                  to_text(shape), to_text(*expected), check.fqn(pair.weight),
                                  to_text(weight)));
  }
  if (subjects.empty()) return;
  std::string said;
  if (check.config && check.config->group && !check.config->block)
    said = fmt::format(" {} says group_size {}.", check.config->file, *check.config->group);
  check.report(
      fmt::format("{} {} not the shape that the weight and its {} imply: {}.{} Scales are applied "
                  "to the wrong elements, or the load fails.",
                  plural(subjects.size(), "tensor"), subjects.size() == 1 ? "has" : "have",
                  check.config && check.config->block ? "blocks" : "groups", details.front(), said),
      subjects, details);
}

// Reports weights of bitsandbytes stored in 4 bits where the config says 8, or the other way round.
void report_mismatched_bits(QuantCheck& check, const QuantFamily& family) {
  const QuantForm form = family.scheme->form;
  if (!check.config || check.config->method != "bitsandbytes" || !check.config->weight_bits ||
      (form != QuantForm::kNf && form != QuantForm::kInt8Rows) || family.pairs.empty())
    return;
  const std::int64_t stored = form == QuantForm::kNf ? 4 : 8, said = *check.config->weight_bits;
  if (said == stored) return;
  std::vector<std::string> subjects;
  for (const QuantPair& pair : family.pairs) subjects.push_back(check.fqn(pair.weight));
  check.report(fmt::format("{} {} stored in {} bits by bitsandbytes, and {} says {} "
                           "(load_in_{}bit). The loader looks for tensors that do not exist.",
                           plural(subjects.size(), "weight"), subjects.size() == 1 ? "is" : "are",
                           stored, check.config->file, said, said),
               subjects, subjects);
}

// Weight elements per scale element along an axis, if three of four weights
// agree.
std::optional<std::int64_t> usual_elements_per_scale(const Checkpoint& c, const QuantFamily& family,
                                                     std::size_t k, std::size_t axis) {
  std::map<std::int64_t, std::size_t> steps;
  std::size_t all = 0;
  for (const QuantPair& pair : family.pairs) {
    if (!pair.beside[k]) continue;
    const ExtentsView shape = c.shape(*pair.beside[k]), weight = c.shape(pair.weight);
    // The scheme gives the shape, which report_shapes compares.
    const auto of_scheme = family.scheme->companions[k].shape;
    if (of_scheme != nullptr && of_scheme(QuantConfig{}, weight, shape)) return {};
    if (shape.size() != weight.size() || shape.size() <= axis || shape[axis] <= 0 ||
        weight[axis] < shape[axis] || shape[axis] == 1)
      return {};
    ++all;
    ++steps[weight[axis] / shape[axis] + (weight[axis] % shape[axis] != 0 ? 1 : 0)];
  }
  for (const auto& [step, count] : steps)
    if (all >= 4 && count * 4 >= all * 3 && step > 0) return step;
  return std::nullopt;
}

// Without a block or group size in the config, compares with the other weights.
void report_unlike_siblings(QuantCheck& check, const QuantFamily& family, std::size_t k) {
  const QuantCompanion& companion = family.scheme->companions[k];
  if (!companion.is_scale) return;
  if (check.config &&
      (check.config->block || check.config->has_overrides || !check.config->modules.empty()))
    return;
  const Checkpoint& c = check.facts.checkpoint;
  std::vector<std::string> subjects, details;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto step = usual_elements_per_scale(c, family, k, axis);
    if (!step) continue;
    for (const QuantPair& pair : family.pairs) {
      if (!pair.beside[k]) continue;
      const ExtentsView shape = c.shape(*pair.beside[k]), weight = c.shape(pair.weight);
      const std::int64_t expected = weight[axis] / *step + (weight[axis] % *step != 0 ? 1 : 0);
      if (shape[axis] == expected) continue;
      subjects.push_back(check.fqn(*pair.beside[k]));
      details.push_back(fmt::format("{} {} next to {}, {} along axis {} expected", subjects.back(),
                                    to_text(shape), to_text(weight), expected, axis));
    }
  }
  if (subjects.empty()) return;
  check.report(
      fmt::format("{} of {} ({}) {} of a size that does not match the others: {}.",
                  human_count(subjects.size()), plural(family.pairs.size(), "scale"),
                  any_of_endings(companion), subjects.size() == 1 ? "is" : "are", details.front()),
      subjects, details);
}

void report_dtypes(QuantCheck& check, const QuantFamily& family, std::size_t k) {
  const auto usual = family.usual_dtypes[k];
  if (!usual || !family.scheme->companions[k].is_scale) return;
  const Checkpoint& c = check.facts.checkpoint;
  std::vector<std::string> others;
  std::set<std::string> dtypes;
  std::size_t all = 0;
  for (const QuantPair& pair : family.pairs) {
    if (!pair.beside[k]) continue;
    ++all;
    if (c.dtype(*pair.beside[k]) == *usual) continue;
    others.push_back(check.fqn(*pair.beside[k]));
    dtypes.emplace(name(c.dtype(*pair.beside[k])));
  }
  if (others.empty()) return;
  check.report(
      fmt::format("{} of the scales {} {}, the other {} {}: they were cast after quantising, and "
                  "lost precision or range that the weights need.",
                  human_count(others.size()), others.size() == 1 ? "is" : "are",
                  fmt::join(dtypes, " or "), human_count(all - others.size()), name(*usual)),
      others, others);
}

void report_orphans(QuantCheck& check, const QuantFamily& family) {
  std::vector<std::string> gone, floats, left;
  for (const QuantFamily::Orphan& orphan : family.orphans) {
    (orphan.unquantised ? left : gone).push_back(check.fqn(orphan.companion));
    if (orphan.unquantised) floats.push_back(orphan.weight);
  }
  if (!gone.empty())
    check.report(fmt::format("{} of quantised weights {} without the weight: {}. Each describes a "
                             "weight that is missing or has a different name.",
                             plural(gone.size(), "companion"), gone.size() == 1 ? "is" : "are",
                             short_list_text(gone)),
                 gone, gone);
  if (!left.empty())
    check.report(fmt::format("{} {} not quantised any more and still {} the scale next to {}: {}. "
                             "A loader that finds the scale applies it a second time.",
                             plural(floats.size(), "weight"), floats.size() == 1 ? "is" : "are",
                             floats.size() == 1 ? "has" : "have",
                             floats.size() == 1 ? "it" : "them", short_list_text(floats)),
                 floats, left);
}

void find_quantised_pairs(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  QuantCheck check{facts, {}, findings};
  if (c.directory() != nullptr) check.config = read_quant_config(*c.directory());
  if (check.config) check.ignored = IgnoredModules(check.config->unconverted);
  const bool is_whole = are_all_files_read(c);
  const std::vector<QuantFamily> families = quant_families(facts, check.config);
  // Classes are in the items, which are not opened at this depth.
  if (facts.depth != Depth::kMetadata) check.classes = classes_of_families(c, families);
  for (const auto& [fqn, one] : check.classes)
    check.of_classes.insert(one.parts.begin(), one.parts.end());
  for (const QuantFamily& family : families) {
    const std::size_t before = findings.size();
    if (is_whole) report_missing(check, family);
    const bool has_wrong_settings = report_wrong_settings(check, family);
    for (std::size_t k = 0; k < family.scheme->companions.size(); ++k) {
      report_endings(check, family, k);
      if (!has_wrong_settings) report_shapes(check, family, k);
      report_unlike_siblings(check, family, k);
      report_dtypes(check, family, k);
      report_values(check, family, k);
      report_group_order(check, family, k);
    }
    if (is_whole) report_unfit(check, family, before);
    if (is_whole) report_orphans(check, family);
    report_unconverted(check, family);
    report_mismatched_bits(check, family);
    report_quantiser_state(check, family);
  }
  if (is_whole) report_unquantised(check, families);
  if (is_whole) report_lost_parts(check, families);
  report_router_bias(check);
  report_cache_scales(check);
}

}  // namespace

const Rule kQuantisedPairs = {
    .id = "quantised-pairs",
    .depth = Depth::kMetadata,
    .title = "A quantised weight lacks its scales, or does not match them",
    .teaches =
        "A quantised weight consists of packed numbers and the tensors needed to decode them: "
        "scales per block, row or group, zero points, a group order. Every scheme (FP8, GPTQ, AWQ, "
        "bitsandbytes, compressed-tensors, MXFP4, NVFP4, MLX) uses its own names, and a loader "
        "looks for exactly those. A tool that requantises a part, renames modules or drops unknown "
        "tensors leaves weights without scales, scales under wrong names, or scales next to "
        "weights that are floats again. Expected shapes follow from the weight and the block or "
        "group size in config.json; with --data the scales' values are read too.",
    .lesson = {.drawing = R"(
  q_proj.weight     F8 [64, 64]     q_proj.weight_scale        not asked for
  up_proj.weight    F8 [160, 64]    up_proj.weight_scale_inv   [5, 2] blocks
)",
               .remedy = "Quantise again with one tool for all weights. If only names differ, "
                         "`shardwright repair CHECKPOINT --against ORIGINAL` restores them.",
               .link = "https://github.com/vllm-project/vllm/issues/54556"},
    .words = {.text = "does not match the quantisation"},
    .run = find_quantised_pairs,
};

}  // namespace shw
