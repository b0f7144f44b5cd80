// Values of quantised weights' companions, and tensors next to them.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "core/base/parse_text.h"
#include "core/base/printable.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/names/float32_names.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/values/quant_torchao.h"
#include "core/facts/values/tensor_pieces.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/names/quant_check.h"
#include "core/tensor/cast.h"
#include "core/tensor/float_counts.h"

namespace shw {
namespace {

// Limit of group numbers that are read without --data, of all weights together.
constexpr std::uint64_t kMaxGroupBytes = std::uint64_t{4} << 20;

// The largest of 32-bit group numbers, as unsigned: negative ones are beyond every row.
std::optional<std::uint32_t> largest_group(const Facts& facts, TensorId tensor) {
  const Checkpoint& c = facts.checkpoint;
  const auto pieces = pieces_of(c, tensor, Dtype::kUnknown, facts.progress);
  if (!pieces) return std::nullopt;
  std::uint32_t largest = 0;
  const bool is_read =
      pieces->pass(whole(copy_of(c.shape(tensor))), [&](const Box&, BytesView bytes) {
        for (std::size_t at = 0; at + sizeof(largest) <= bytes.size(); at += sizeof(largest)) {
          std::uint32_t group = 0;
          std::memcpy(&group, bytes.data() + at, sizeof(group));
          largest = std::max(largest, group);
        }
      });
  return is_read ? std::optional(largest) : std::nullopt;
}

}  // namespace

void QuantCheck::report(std::string cause, std::vector<std::string> subjects,
                        std::vector<std::string> details) {
  Finding finding{.rule = std::string(kQuantisedPairs.id), .severity = Severity::kWarning};
  finding.cause = std::move(cause);
  finding.evidence = {{"count", count_of(subjects.size())}, {"details", capped(details)}};
  finding.subjects = std::move(subjects);
  findings.push_back(std::move(finding));
}

std::string ending_without_separator(std::string_view ending) {
  return std::string(ending.substr(ending.starts_with('.') || ending.starts_with('_') ? 1 : 0));
}

std::string any_of_endings(const QuantCompanion& companion) {
  std::vector<std::string> names;
  for (std::string_view ending : split_at(companion.endings, '|'))
    names.push_back("`" + ending_without_separator(ending) + "`");
  // Endings that differ in their first character alone are one name.
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " or ") + name;
  return text;
}

void report_values(QuantCheck& check, const QuantFamily& family, std::size_t k) {
  if (!family.scheme->companions[k].is_scale) return;
  const Checkpoint& c = check.facts.checkpoint;
  std::vector<std::string> subjects, details;
  for (const QuantPair& pair : family.pairs) {
    if (!pair.beside[k] || !can_be_counted(c.dtype(*pair.beside[k]))) continue;
    const auto counts = float_counts(check.facts, *pair.beside[k]);
    if (!counts || counts->count == 0) continue;
    const std::int64_t broken = counts->nan + counts->infinite + counts->zero;
    if (broken == 0) continue;
    subjects.push_back(check.fqn(*pair.beside[k]));
    details.push_back(fmt::format("{}: {} of {}", subjects.back(), broken, counts->count));
  }
  if (subjects.empty()) return;
  check.report(fmt::format("{} of {} ({}) {} 0, NaN or infinity ({}). Every element that such a "
                           "scale multiplies is unusable.",
                           human_count(subjects.size()), plural(family.pairs.size(), "scale"),
                           any_of_endings(family.scheme->companions[k]),
                           subjects.size() == 1 ? "holds" : "hold", details.front()),
               subjects, details);
}

void report_group_order(QuantCheck& check, const QuantFamily& family, std::size_t k) {
  if (family.scheme->companions[k].endings != ".g_idx") return;
  const Checkpoint& c = check.facts.checkpoint;
  std::uint64_t bytes = 0;
  for (const QuantPair& pair : family.pairs)
    if (pair.beside[k]) bytes += bytes_of_elements(c, *pair.beside[k]);
  const Depth depth = check.facts.depth;
  if (depth == Depth::kMetadata || (depth != Depth::kData && bytes > kMaxGroupBytes)) return;
  std::vector<std::string> subjects, details;
  for (const QuantPair& pair : family.pairs) {
    if (!pair.beside[0] || !pair.beside[k] || c.dtype(*pair.beside[k]) != Dtype::kInt32 ||
        c.shape(*pair.beside[0]).empty())
      continue;
    const std::int64_t rows = c.shape(*pair.beside[0])[0];
    const auto largest = largest_group(check.facts, *pair.beside[k]);
    if (!largest || std::int64_t{*largest} < rows) continue;
    subjects.push_back(check.fqn(*pair.beside[k]));
    details.push_back(fmt::format("{} goes up to group {}, and {} has {}", subjects.back(),
                                  *largest, check.fqn(*pair.beside[0]),
                                  plural(static_cast<std::uint64_t>(rows), "row")));
  }
  if (subjects.empty()) return;
  check.report(fmt::format("{} {} groups that have no scale: {}. The kernel reads past the end of "
                           "the scales, and outputs garbage or fails.",
                           plural(subjects.size(), "g_idx tensor"),
                           subjects.size() == 1 ? "names" : "name", details.front()),
               subjects, details);
}

namespace {

std::uint64_t companion_bytes(const Checkpoint& c, const QuantFamily& family) {
  std::uint64_t bytes = 0;
  for (const QuantPair& pair : family.pairs)
    for (std::size_t k = 1; k < pair.beside.size(); ++k)
      if (pair.beside[k]) bytes += bytes_of_elements(c, *pair.beside[k]);
  return bytes;
}

}  // namespace

void report_unfit(QuantCheck& check, const QuantFamily& family, std::size_t from) {
  const QuantForm form = family.scheme->form;
  const Depth depth = check.facts.depth;
  // Whether these fit is in the values of a small tensor next to each.
  const bool reads_state =
      form == QuantForm::kNf || form == QuantForm::kPacked || form == QuantForm::kHqq;
  if (reads_state && depth == Depth::kMetadata) return;
  const bool reads_values =
      depth == Depth::kData || (depth != Depth::kMetadata &&
                                companion_bytes(check.facts.checkpoint, family) <= kMaxGroupBytes);
  // Other tensors have such names and dtypes too, and other methods (AutoRound) such names in
  // another order.
  const bool is_ambiguous = form == QuantForm::kScaled || form == QuantForm::kAffine;
  const bool is_certain =
      family.is_said || (check.config && is_named_for_other_method(family, check.config->method)) ||
      (form != QuantForm::kGrouped && (!check.classes.empty() || !is_ambiguous));
  if (!is_certain) return;
  std::set<std::string> named;
  for (std::size_t i = from; i < check.findings.size(); ++i)
    named.insert(check.findings[i].subjects.begin(), check.findings[i].subjects.end());
  const std::shared_ptr<const Checkpoint> checkpoint(&check.facts.checkpoint,
                                                     [](const Checkpoint*) {});
  const QuantConfig config = check.config.value_or(QuantConfig{});
  std::vector<std::string> subjects, details;
  for (const QuantPair& pair : family.pairs) {
    const bool is_named = named.contains(check.fqn(pair.weight)) ||
                          std::ranges::any_of(pair.beside, [&](const auto& one) {
                            return one && named.contains(check.fqn(*one));
                          });
    if (is_named) continue;
    const auto decoded = decoded_weight(checkpoint, family, pair, config, check.classes);
    Status fits;
    if (!decoded)
      fits = tl::unexpected(decoded.error());
    else if (reads_values && decoded->check_values)
      fits = decoded->check_values();
    if (fits || fits.error().kind != ErrorKind::kDamaged) continue;
    subjects.push_back(check.fqn(pair.weight));
    details.push_back(fmt::format("{} {}", subjects.back(), fits.error().message));
  }
  if (subjects.empty()) return;
  check.report(fmt::format("{} {} not match the tensors that belong to {}: {}. A load fails here, "
                           "or computes with wrong numbers.",
                           plural(subjects.size(), std::string(family.scheme->title) + " weight"),
                           subjects.size() == 1 ? "does" : "do",
                           subjects.size() == 1 ? "it" : "them", details.front()),
               subjects, details);
}

void report_lost_parts(QuantCheck& check, const std::vector<QuantFamily>& families) {
  std::set<std::string> named, weights;
  for (const QuantFamily& family : families)
    for (const QuantPair& pair : family.pairs) weights.insert(check.fqn(pair.weight));
  for (const Finding& finding : check.findings)
    named.insert(finding.subjects.begin(), finding.subjects.end());
  std::vector<std::string> subjects, details;
  for (const auto& [fqn, one] : check.classes) {
    if (std::ranges::any_of(one.parts, [&](const auto& part) { return named.contains(part); }))
      continue;
    auto lost = std::ranges::find_if(
        one.parts, [&](const std::string& part) { return !check.facts.checkpoint.find(part); });
    const bool has_weight =
        !is_decoded_class(one.type) ||
        std::ranges::any_of(one.parts, [&](const auto& part) { return weights.contains(part); });
    if (lost == one.parts.end() && !has_weight) lost = one.parts.begin();
    if (lost == one.parts.end()) continue;
    subjects.push_back(printable(*lost));
    details.push_back(
        fmt::format("{} of {}, a {}", subjects.back(), printable(fqn), printable(one.type)));
  }
  if (subjects.empty()) return;
  check.report(
      fmt::format("{} of quantised weights {} missing, or not of the form that {} class has: {}. "
                  "The file lists the tensors of each class, and a loader fails at {}.",
                  plural(subjects.size(), "tensor"), subjects.size() == 1 ? "is" : "are",
                  subjects.size() == 1 ? "its" : "their", short_list_text(details),
                  subjects.size() == 1 ? "it" : "them"),
      subjects, details);
}

// Reports router biases in 16 bits: routers add them to scores before selecting experts, so experts
// with close scores would be swapped. If everything is 16-bit, the model was trained that way.
void report_router_bias(QuantCheck& check) {
  const Checkpoint& c = check.facts.checkpoint;
  std::vector<std::string> narrow;
  std::size_t whole = 0;
  for (TensorId tensor : each_tensor(check.facts)) {
    if (!is_router_bias(c.fqn(tensor))) continue;
    if (c.dtype(tensor) == Dtype::kFloat32)
      ++whole;
    else
      narrow.emplace_back(c.fqn(tensor));
  }
  if (narrow.empty() || whole == 0) return;
  check.report(
      fmt::format("{} of routers {} {}, and {} in float32 ({}). In lower precision, experts with "
                  "close scores can be swapped.",
                  plural(narrow.size(), "bias"), narrow.size() == 1 ? "is" : "are",
                  name(c.dtype(*c.find(narrow.front()))),
                  human_count(whole) + (whole == 1 ? " is" : " are"), short_list_text(narrow)),
      narrow, narrow);
}

void report_cache_scales(QuantCheck& check) {
  struct Scales {
    std::string keys, values;
  };
  std::map<std::string, Scales> attentions;
  for (TensorId tensor : each_tensor(check.facts)) {
    std::string_view stem = check.facts.checkpoint.fqn(tensor);
    const std::string fqn(stem);
    const bool is_key = stem.ends_with(".k_scale");
    if (!is_key && !stem.ends_with(".v_scale")) continue;
    stem.remove_suffix(std::string_view(".k_scale").size());
    // Some writers put each into its own projection.
    if (stem.ends_with(is_key ? ".k_proj" : ".v_proj"))
      stem.remove_suffix(std::string_view(".k_proj").size());
    Scales& scales = attentions[std::string(stem)];
    (is_key ? scales.keys : scales.values) = fqn;
  }
  std::vector<std::string> alone;
  for (const auto& [attention, scales] : attentions) {
    if (scales.keys.empty() != scales.values.empty())
      alone.push_back(scales.keys.empty() ? scales.values : scales.keys);
  }
  if (alone.empty() || alone.size() * 4 > attentions.size()) return;
  check.report(
      fmt::format("{} of {} {} only the scale of keys or only that of values ({}). A server uses 1 "
                  "for the other, so the cache of that layer holds wrong values.",
                  human_count(alone.size()), plural(attentions.size(), "attention"),
                  alone.size() == 1 ? "has" : "have", short_list_text(alone)),
      alone, alone);
}

void report_quantiser_state(QuantCheck& check, const QuantFamily& family) {
  const Checkpoint& c = check.facts.checkpoint;
  std::vector<std::string> stems, left;
  for (const QuantPair& pair : family.pairs) stems.push_back(pair.stem);
  std::sort(stems.begin(), stems.end());
  for (TensorId tensor : each_tensor(check.facts)) {
    const std::string_view fqn = c.fqn(tensor);
    for (std::string_view part :
         {".weight_quantizer.", ".input_quantizer.", ".output_quantizer."}) {
      const std::size_t at = fqn.find(part);
      if (at != fqn.npos && std::binary_search(stems.begin(), stems.end(), fqn.substr(0, at)))
        left.emplace_back(fqn);
    }
  }
  if (left.empty()) return;
  check.report(
      fmt::format("{} {} internal to the quantiser ({}), next to weights that it has packed. The "
                  "export did not remove {}: vLLM and SGLang do not know such names, and fail.",
                  plural(left.size(), "tensor"), left.size() == 1 ? "is" : "are",
                  short_list_text(left), left.size() == 1 ? "it" : "them"),
      left, left);
}

}  // namespace shw
