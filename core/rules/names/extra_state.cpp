// Transformer Engine's _extra_state is an object in one place and a tensor in another; its length
// gives the number of scaling factors.
#include <fmt/core.h>

#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/name_families.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

struct SiblingCount {
  std::vector<std::string> names;
  std::set<std::int64_t> lengths;  // number of elements, for tensors
  std::size_t tensors = 0, objects = 0;
};

bool is_extra_state(std::string_view fqn) {
  return fqn.find("_extra_state") != std::string_view::npos;
}

void find_extra_states(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string, SiblingCount> kin;
  for (TensorId tensor : each_tensor(facts)) {
    std::string_view fqn = c.fqn(tensor);
    if (!is_extra_state(fqn)) continue;
    SiblingCount& family = kin[without_numbers(fqn)];
    family.names.emplace_back(fqn);
    family.lengths.insert(volume(c.shape(tensor)).value_or(-1));
    ++family.tensors;
  }
  for (const NonTensorEntry& object : c.objects()) {
    if (!is_extra_state(object.fqn)) continue;
    SiblingCount& family = kin[without_numbers(object.fqn)];
    family.names.push_back(object.fqn);
    ++family.objects;
  }
  Finding finding{.rule = "extra-state", .severity = Severity::kInfo};
  std::vector<std::string> how;
  for (auto& [name, family] : kin) {
    bool mixed = family.tensors > 0 && family.objects > 0;
    if (!mixed && family.lengths.size() < 2) continue;
    std::string text = name + ": ";
    if (mixed)
      text += plural(family.tensors, "tensor") + " and " + plural(family.objects, "object");
    if (family.lengths.size() > 1)
      text += fmt::format("{}{} to {} elements", mixed ? ", " : "", *family.lengths.begin(),
                          *family.lengths.rbegin());
    how.push_back(std::move(text));
    finding.subjects.insert(finding.subjects.end(), family.names.begin(), family.names.end());
  }
  if (how.empty()) return;
  finding.cause =
      "The extra state of equal layers differs in length, or is a tensor in one layer and an "
      "object in another (" +
      how.front() + "): the layers use different precisions, or different versions saved them.";
  finding.evidence = {{"families", capped(how)}, {"family_count", count_of(how.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kExtraState = {
    .id = "extra-state",
    .depth = Depth::kMetadata,
    .title = "Extra state differs between equal layers",
    .teaches =
        "Transformer Engine keeps the scaling factors of FP8 in _extra_state next to each layer's "
        "weights: empty without FP8, longer with it, a tensor or a pickled object depending on the "
        "version. A model may run some layers (often the first and the last) in a different "
        "precision, so a difference is only a hint. If a load fails with 'Unexpected type' or at "
        "the size of an _extra_state, look here first.",
    .lesson = {.drawing = R"(
  layers.0.fc1._extra_state     tensor of 1,024 bytes
  layers.1.fc1._extra_state     tensor of 0 bytes        another precision?
)",
               .remedy = "Nothing to do unless a load fails at it; then save again with one "
                         "version and precision."},
    .run = find_extra_states,
};

}  // namespace shw
