#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/formats/items/items.h"
#include "core/model/state_names.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/names/plan_names.h"
#include "core/spec/similar_names.h"

namespace shw {
namespace {

struct OtherName {
  TensorId tensor{};
  std::string_view expected;
  bool is_proved = false;  // bytes equal the reference's under the expected name
};

// A systematic difference of names, and the tensors with it.
struct NameDifference {
  std::vector<std::string> dropped;  // marks such as "`_orig_mod.` (torch.compile)"
  NameChange change;                 // the remaining difference
  auto operator<=>(const NameDifference&) const = default;
};
using Differences = std::map<NameDifference, std::vector<OtherName>>;

NameDifference difference_of(std::string_view here, std::string_view there) {
  NameDifference difference;
  const Unwrapped a = without_wrappers(here, false), b = without_wrappers(there, false);
  for (const WrapperMark* mark : a.marks) {
    if (std::find(b.marks.begin(), b.marks.end(), mark) == b.marks.end())
      difference.dropped.push_back(mark_text(*mark));
  }
  difference.change =
      difference.dropped.empty() ? name_change(here, there) : name_change(a.name, b.name);
  difference.change.common = 0;
  return difference;
}

std::string change_words(const NameChange& change, bool is_one, const std::string& expected_in) {
  const bool front = change.at == NameChange::At::kFront, end = change.at == NameChange::At::kEnd;
  const char* place = is_one ? "has" : "have";
  if (front) place = is_one ? "begins with" : "begin with";
  if (end) place = is_one ? "ends in" : "end in";
  const std::string dot_front = front ? "" : ".", dot_end = end ? "" : ".";
  const std::string here = dot_front + change.here + dot_end,
                    there = dot_front + change.there + dot_end;
  if (change.there.empty())
    return fmt::format("{} `{}`; {} has the same tensors without it", place, here, expected_in);
  if (change.here.empty())
    return fmt::format("{} `{}`, which {} has in the names of the same tensors",
                       is_one ? "lacks" : "lack", there, expected_in);
  return fmt::format("{} `{}`, where {} has `{}` in the names of the same tensors", place, here,
                     expected_in, there);
}

// "21 of 21 names begin with `module.`; the reference has the same tensors without it."
std::string name_difference_text(const NameDifference& difference, std::size_t count,
                                 std::size_t all, const std::string& expected_in) {
  const bool is_one = count == 1, has_change = difference.change != NameChange{};
  std::string words = fmt::format("{} of {} ", human_count(count), plural(all, "name"));
  if (!difference.dropped.empty())
    words +=
        fmt::format("{} {} in {}{}", is_one ? "has" : "have",
                    short_list_text(difference.dropped, 8), is_one ? "it" : "them",
                    has_change ? " and " : "; " + expected_in + " has the same tensors without");
  if (has_change) words += change_words(difference.change, is_one, expected_in);
  return words + ".";
}

// The name without wrappers and prefixes; for an optimizer state the parameter's name.
std::string bare_parameter(std::string_view fqn) {
  const auto state = parse_state_fqn(fqn);
  return unwrapped_name(state ? state->key : fqn);
}

// True for a training checkpoint and an export, whose names differ by
// design.
bool have_same_loader(const Facts& facts, const std::vector<OtherName>& names) {
  if (facts.reference == nullptr) return true;
  const bool is_export = facts.checkpoint.format().traits.has_one_piece_per_tensor;
  if (facts.reference->format().traits.has_one_piece_per_tensor != is_export) return false;
  // Trainers wrap models with "model." and "module." and accept both.
  return is_export || !std::all_of(names.begin(), names.end(), [&](const OtherName& one) {
           const std::string_view fqn = facts.checkpoint.fqn(one.tensor);
           return without_wrappers(fqn, false).marks.empty() &&
                  bare_parameter(fqn) == bare_parameter(one.expected);
         });
}

// Limit of bytes read to prove a replaced word, per tensor and in total.
constexpr std::uint64_t kMaxProvedBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxProvedInAll = std::uint64_t{1} << 30;

bool has_same_bytes(const Facts& facts, TensorId tensor, TensorId other) {
  auto here = read_tensor(facts.checkpoint, tensor);
  auto there = read_tensor(*facts.reference, other);
  return here && there && here->uncovered == 0 && there->uncovered == 0 &&
         here->bytes == there->bytes;
}

void prove_names_by_bytes(const Facts& facts, std::vector<OtherName>& names) {
  const Checkpoint& c = facts.checkpoint;
  if (facts.reference == nullptr || facts.depth == Depth::kMetadata) return;
  std::uint64_t read = 0;
  for (OtherName& one : names) {
    const auto other = facts.counterparts[index_of(one.tensor)];
    if (one.is_proved || !other || c.dtype(one.tensor) != facts.reference->dtype(*other)) continue;
    const auto bytes = static_cast<std::uint64_t>(volume(c.shape(one.tensor)).value_or(0)) *
                       size_of(c.dtype(one.tensor));
    if (bytes == 0 || bytes > kMaxProvedBytes || read + bytes > kMaxProvedInAll) continue;
    read += bytes;
    one.is_proved = has_same_bytes(facts, one.tensor, *other);
  }
}

bool is_certain_rename(const Checkpoint& c, const NameDifference& difference,
                       const std::vector<OtherName>& names) {
  const bool by_roots = std::all_of(names.begin(), names.end(), [&](const OtherName& one) {
    return bare_parameter(c.fqn(one.tensor)) == bare_parameter(one.expected);
  });
  return by_roots || difference.change.here.empty() || difference.change.there.empty() ||
         std::all_of(names.begin(), names.end(), [](const auto& one) { return one.is_proved; });
}

// LoRA matrices of a PEFT-wrapped model that spec and reference lack.
bool has_adapter_matrices(const Facts& facts) {
  for (TensorId tensor : each_tensor(facts)) {
    const bool is_expected =
        facts.reference != nullptr
            ? facts.counterparts[index_of(tensor)].has_value()
            : facts.spec != nullptr && facts.spec->find(facts.checkpoint.fqn(tensor)) != nullptr;
    if (!is_expected && is_adapter_name(facts.checkpoint.fqn(tensor))) return true;
  }
  return false;
}

void report_difference(const Facts& facts, const NameDifference& difference,
                       std::vector<OtherName> names, std::size_t all,
                       std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = std::string(kRenamedTensors.id)};
  const bool one_loader = have_same_loader(facts, names);
  finding.severity = one_loader ? Severity::kError : Severity::kInfo;
  if (!difference.change.here.empty() && !difference.change.there.empty())
    prove_names_by_bytes(facts, names);
  std::vector<std::string> pairs;
  std::vector<std::pair<TensorId, std::string>> new_names;
  std::size_t proved = 0;
  for (const OtherName& one : names) {
    finding.subjects.emplace_back(c.fqn(one.tensor));
    pairs.push_back(fmt::format("{}: {}", c.fqn(one.tensor), one.expected));
    new_names.emplace_back(one.tensor, one.expected);
    proved += one.is_proved ? 1 : 0;
  }
  finding.cause = name_difference_text(difference, names.size(), all,
                                       facts.reference != nullptr ? "the reference" : "the spec");
  finding.cause += one_loader ? fmt::format(
                                    " A loader that looks for {} does not find it, and leaves the "
                                    "tensor at random values or fails.",
                                    names.front().expected)
                              : " Trainers and exports use different names; each loads its own.";
  if (proved != 0)
    finding.cause +=
        fmt::format(" {} of them {} the same bytes as the reference has under its name.",
                    human_count(proved), proved == 1 ? "has" : "have");
  finding.evidence = {{"names", count_of(names.size())},
                      {"of", count_of(all)},
                      {"renamed", capped(pairs)},
                      {"same_bytes", count_of(proved)}};
  if (has_adapter_matrices(facts))
    finding.cause +=
        " Adapter matrices are next to these weights: merge_and_unload() merges them, a rename "
        "does not.";
  else if (one_loader && is_certain_rename(c, difference, names))
    plan_new_names(facts, std::move(new_names), finding);
  findings.push_back(std::move(finding));
}

void add_names_by_reference(const Facts& facts, Differences& differences) {
  for (TensorId tensor : each_tensor(facts)) {
    const auto other = facts.counterparts[index_of(tensor)];
    if (!other) continue;
    const std::string_view here = facts.checkpoint.fqn(tensor),
                           there = facts.reference->fqn(*other);
    if (here == there) continue;
    differences[difference_of(here, there)].push_back(
        {tensor, there, facts.equal_to_reference.contains(tensor)});
  }
}

void add_by_spec(const Facts& facts, Differences& differences) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<NamedShape> here, there;
  std::vector<std::string_view> all_here, all_there;
  std::vector<TensorId> ids;
  for (TensorId tensor : each_tensor(facts)) {
    all_here.push_back(c.fqn(tensor));
    if (facts.spec->find(c.fqn(tensor)) != nullptr) continue;
    here.push_back({c.fqn(tensor), c.shape(tensor)});
    ids.push_back(tensor);
  }
  for (const auto& [fqn, entry] : each_of(facts.spec->entries, facts)) {
    all_there.push_back(fqn);
    if (!c.find(fqn)) there.push_back({fqn, entry.shape});
  }
  const auto found = match_similar_names(here, there, all_here, all_there, {}, facts.progress);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i] || !same(here[i].shape, there[*found[i]].shape)) continue;
    differences[difference_of(here[i].name, there[*found[i]].name)].push_back(
        {ids[i], there[*found[i]].name, false});
  }
}

// Nested wrappers may mark names once or twice: one cause.
void merge_wrapper_differences(Differences& differences) {
  NameDifference all;
  std::vector<OtherName> names;
  std::erase_if(differences, [&](auto& one) {
    if (one.first.change != NameChange{}) return false;
    for (const std::string& mark : one.first.dropped) {
      if (std::find(all.dropped.begin(), all.dropped.end(), mark) == all.dropped.end())
        all.dropped.push_back(mark);
    }
    names.insert(names.end(), one.second.begin(), one.second.end());
    return true;
  });
  if (!names.empty()) differences.emplace(std::move(all), std::move(names));
}

void find_renamed_tensors(const Facts& facts, std::vector<Finding>& findings) {
  Differences differences;
  if (facts.reference != nullptr)
    add_names_by_reference(facts, differences);
  else if (facts.spec != nullptr)
    add_by_spec(facts, differences);
  if (differences.empty()) return;
  merge_wrapper_differences(differences);
  for (const auto& [difference, names] : each_of(differences, facts))
    report_difference(facts, difference, names, facts.checkpoint.tensor_count(), findings);
}

}  // namespace

const Rule kRenamedTensors = {
    .id = "renamed-tensors",
    .depth = Depth::kMetadata,
    .title = "Tensor names do not match the model's",
    .teaches =
        "Loaders find tensors by their names. Here many names differ from the spec's or the "
        "reference's in the same way: they contain a wrapper prefix (`_orig_mod.`, `module.`), a "
        "prefix is missing, or one word replaces another. Most loaders skip such tensors and leave "
        "the model at random values, with only a line in the log. The repair gives the tensors the "
        "expected names; no element changes. A replaced word is renamed only if the reference "
        "holds the same bytes under the expected name.",
    .lesson = {.drawing = R"(
  saved                                      expected
  _orig_mod.model.layers.0.mlp.up.weight     model.layers.0.mlp.up.weight
  _orig_mod.model.layers.1.mlp.up.weight     model.layers.1.mlp.up.weight
)",
               .remedy = "`shardwright repair CHECKPOINT --against REFERENCE` renames the tensors. "
                         "Unwrap the model before the next save.",
               .link = "https://github.com/karpathy/nanoGPT/issues/325"},
    .words = {.text = "under names that the model does not use"},
    .run = find_renamed_tensors,
};

}  // namespace shw
