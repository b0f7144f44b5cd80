#include "core/rules/reference/one_side_quantised.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/cancellable_range.h"
#include "core/base/words.h"
#include "core/facts/check_input.h"
#include "core/facts/evidence.h"
#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_families.h"
#include "core/model/state_names.h"
#include "core/rules/rules.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

struct PackedWeight {
  QuantPair pair;
  std::string_view scheme;  // "FP8"
};

// Weights with at least one companion: a weight without any may be a plain cast. GGUF's packing
// belongs to the format, which decodes it.
std::vector<PackedWeight> packed_weights(const Checkpoint& c, Progress* progress) {
  std::vector<PackedWeight> out;
  if (c.directory() == nullptr) return out;
  CheckInput input{c, nullptr, nullptr, {}, {}, {}, {}};
  input.progress = progress;
  for (QuantFamily& family : quant_families(input, read_quant_config(*c.directory()))) {
    if (!family.scheme->codec.empty()) continue;
    for (QuantPair& pair : family.pairs) {
      const bool has_any = std::any_of(pair.beside.begin(), pair.beside.end(),
                                       [](const auto& one) { return one.has_value(); });
      if (has_any) out.push_back({std::move(pair), family.scheme->title});
    }
  }
  return out;
}

// Names without wrappers; nullopt where two tensors share one.
using UnwrappedNames = std::unordered_map<std::string, std::optional<TensorId>>;

UnwrappedNames unwrapped_names(const Checkpoint& c, Progress* progress) {
  UnwrappedNames out;
  for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
    auto [found, added] = out.try_emplace(unwrapped_name(c.fqn(tensor)), tensor);
    if (!added) found->second.reset();
  }
  return out;
}

// The floats of a packed weight: gpt-oss names them by the stem alone, all others with ".weight".
std::optional<TensorId> plain_weight(const Checkpoint& plain, const UnwrappedNames& names,
                                     const std::string& stem) {
  for (const std::string& fqn : {stem + ".weight", stem}) {
    auto tensor = plain.find(fqn);
    if (!tensor) {
      const auto found = names.find(unwrapped_name(fqn));
      if (found != names.end()) tensor = found->second;
    }
    if (tensor && is_plain_float(plain.dtype(*tensor))) return tensor;
  }
  return std::nullopt;
}

Finding not_compared_finding(const std::vector<std::string>& subjects, std::string_view scheme,
                             bool is_here, const Checkpoint& quantised) {
  const std::size_t count = subjects.size();
  const std::string folder = quantised.directory()->name();
  Finding finding{.rule = std::string(kDiffersFromReference.id), .severity = Severity::kInfo};
  finding.cause = fmt::format(
      "{} {} quantised in the {} ({}) and plain in the {} ({}). The two forms differ in names, "
      "shapes and dtypes by design, so they were not compared. To compare the values, name the "
      "quantised side {}/@dequantised: that decodes it.",
      plural(count, "weight"), count == 1 ? "is" : "are", is_here ? "checkpoint" : "reference",
      scheme, is_here ? "reference" : "checkpoint", short_list_text(subjects), folder);
  finding.evidence = {
      {std::string(kQuantisedSide), std::string(is_here ? "checkpoint" : "reference")},
      {"count", count_of(count)}};
  finding.subjects = subjects;
  return finding;
}

}  // namespace

OneSideQuantised find_one_side_quantised(const Checkpoint& checkpoint, const Checkpoint& reference,
                                         Progress* progress) {
  OneSideQuantised out;
  const std::vector<PackedWeight> here = packed_weights(checkpoint, progress),
                                  there = packed_weights(reference, progress);
  if (here.empty() == there.empty()) return out;
  const bool is_here = there.empty();
  const Checkpoint& quantised = is_here ? checkpoint : reference;
  const Checkpoint& plain = is_here ? reference : checkpoint;
  std::set<TensorId>& packed = is_here ? out.here : out.there;
  std::set<TensorId>& floats = is_here ? out.there : out.here;
  const UnwrappedNames names = unwrapped_names(plain, progress);
  std::vector<std::string> subjects;
  std::string_view scheme;
  for (const auto& [pair, title] : cancellable_range(is_here ? here : there, progress)) {
    const auto weight = plain_weight(plain, names, pair.stem);
    if (!weight) continue;
    floats.insert(*weight);
    packed.insert(pair.weight);
    for (const auto& one : pair.beside)
      if (one) packed.insert(*one);
    subjects.emplace_back(checkpoint.fqn(is_here ? pair.weight : *weight));
    scheme = title;
  }
  if (subjects.empty()) return out;
  // Scales of the key-value cache belong to no weight.
  for (TensorId tensor : cancellable_range(quantised.tensors(), progress)) {
    const std::string_view fqn = quantised.fqn(tensor);
    if (fqn.ends_with(".k_scale") || fqn.ends_with(".v_scale")) packed.insert(tensor);
  }
  out.finding = not_compared_finding(subjects, scheme, is_here, quantised);
  return out;
}

void unmatch(const OneSideQuantised& sides, NameMap& names) {
  for (std::size_t i = 0; i < names.in_reference.size(); ++i) {
    auto& other = names.in_reference[i];
    const bool is_one = sides.here.contains(TensorId{static_cast<std::uint32_t>(i)});
    if (is_one || (other && sides.there.contains(*other))) other.reset();
  }
}

void drop_expectations(const OneSideQuantised& sides, const Checkpoint& checkpoint,
                       const Checkpoint& reference, Spec& spec) {
  for (TensorId other : sides.there) {
    const auto entry = spec.entries.find(std::string(reference.fqn(other)));
    if (entry == spec.entries.end()) continue;
    const auto tensor = checkpoint.find(reference.fqn(other));
    if (tensor && sides.here.contains(*tensor) &&
        same(checkpoint.shape(*tensor), reference.shape(other)))
      entry->second.dtype.reset();
    else
      spec.entries.erase(entry);
  }
}

}  // namespace shw
