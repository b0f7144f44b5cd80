// N10: a pipeline stage counts its layers from 0, and the local number was saved as the global one
// (spec/failures.md 8). The reference says which layer each one really is, by its bytes.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/rules/block_order.h"
#include "core/rules/reference_bytes.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Tensors that differ from each other in one number of their names: "layers.", 7, ".mlp.weight".
struct Member {
  std::string before, after;
  std::int64_t number = 0;
};

bool is_number(std::string_view part) {
  return !part.empty() && part.size() < 7 &&
         std::all_of(part.begin(), part.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// By the first part of the name that is a number; states are counted by their own keys.
std::optional<Member> member_of(std::string_view fqn) {
  if (fqn.starts_with("optim")) return std::nullopt;
  std::size_t begin = 0;
  while (begin < fqn.size()) {
    std::size_t end = std::min(fqn.find('.', begin), fqn.size());
    std::string_view part = fqn.substr(begin, end - begin);
    if (is_number(part) && begin > 0)
      return Member{std::string(fqn.substr(0, begin)), std::string(fqn.substr(end)),
                    std::stoll(std::string(part))};
    begin = end + 1;
  }
  return std::nullopt;
}

using Layers = std::map<std::int64_t, TensorId>;  // by number
using Families = std::map<std::pair<std::string, std::string>, Layers>;

// By the names that the checkpoint uses, for both sides.
Families families_of(const Checkpoint& c, const std::vector<std::string>& names) {
  Families out;
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    if (names[t].empty() || c.shape(TensorId{t}).size() < 2) continue;
    if (auto member = member_of(names[t]))
      out[{member->before, member->after}][member->number] = TensorId{t};
  }
  return out;
}

// Layer of the checkpoint -> layer of the reference with the same bytes; nothing where two have
// them.
std::map<std::int64_t, std::int64_t> real_numbers(const Checkpoint& c, const Layers& here,
                                                  const Checkpoint& reference,
                                                  const Layers& there) {
  std::map<std::string, std::int64_t> by_hash;
  std::set<std::string> twice;
  for (const auto& [number, tensor] : there) {
    auto values = whole_values(reference, tensor);
    if (!values) continue;
    std::string hash = content_hash(values->bytes);
    if (!by_hash.emplace(hash, number).second) twice.insert(hash);
  }
  std::map<std::int64_t, std::int64_t> out;
  for (const auto& [number, tensor] : here) {
    auto values = whole_values(c, tensor);
    if (!values) continue;
    std::string hash = content_hash(values->bytes);
    auto found = by_hash.find(hash);
    if (found != by_hash.end() && !twice.contains(hash)) out[number] = found->second;
  }
  return out;
}

std::string kind_of_shift(const std::map<std::int64_t, std::int64_t>& real) {
  std::set<std::int64_t> shifts;
  for (auto [here, there] : real) shifts.insert(there - here);
  if (shifts.size() == 1)
    return "every number is " + std::to_string(*shifts.begin()) + " too small";
  return "they do not keep their distance";
}

void run(const RuleInput& input, std::vector<Finding>& findings) {
  if (input.reference == nullptr) return;
  const Checkpoint &c = input.checkpoint, &reference = *input.reference;
  std::vector<std::string> names, reference_names(reference.tensor_count());
  for (std::uint32_t t = 0; t < reference.tensor_count(); ++t)
    reference_names[t] = reference.fqn(TensorId{t});
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    names.emplace_back(c.fqn(TensorId{t}));
    if (input.counterparts[t]) reference_names[index_of(*input.counterparts[t])] = names.back();
  }
  Families here = families_of(c, names), there = families_of(reference, reference_names);
  std::vector<std::string> wrong, missing, renames;
  std::map<std::int64_t, std::int64_t> first;
  for (const auto& [family, layers] : here) {
    auto found = there.find(family);
    // Only where the reference has layers that are not here is a number worth doubting.
    if (found == there.end() || found->second.size() <= layers.size()) continue;
    auto real = real_numbers(c, layers, reference, found->second);
    bool renumbered = real.size() == layers.size() &&
                      std::any_of(real.begin(), real.end(),
                                  [](const auto& one) { return one.first != one.second; });
    if (!renumbered) continue;
    if (first.empty()) first = real;
    std::set<std::int64_t> seen;
    for (auto [number, truth] : real) {
      seen.insert(truth);
      if (number == truth) continue;
      wrong.emplace_back(c.fqn(layers.at(number)));
      renames.push_back(wrong.back() + " is " + family.first + std::to_string(truth) +
                        family.second);
    }
    for (const auto& [number, tensor] : found->second) {
      if (!seen.contains(number) && !layers.contains(number))
        missing.emplace_back(family.first + std::to_string(number) + family.second);
    }
  }
  if (wrong.empty()) return;
  Finding finding;
  finding.rule = "layers-renumbered";
  finding.link = "Megatron-LM #7452";
  finding.cause = plural(wrong.size(), "tensor") + " of another layer than the name says (" +
                  renames.front() + " in the reference, byte for byte; " + kind_of_shift(first) +
                  "): a pipeline stage saved its own counting of layers as the global one.";
  finding.evidence = {{"count", count_of(wrong.size())},
                      {"renames", capped(renames)},
                      {"layers that are not here", capped(missing)}};
  finding.subjects = std::move(wrong);
  finding.remedy =
      Remedy{"rename", missing.empty(),
             "Give the layers the numbers of the reference. Shardwright does not carry this out "
             "yet; layers of other stages that were saved under the same names are lost."};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kLayersRenumbered = {
    "layers-renumbered", Depth::kHeaders, "Layers carry the numbers of their pipeline stage",
    "Under pipeline parallelism every stage has some of the layers and counts them from 0. A saver "
    "that writes the local number as the global one gives the first stage's names to all stages; "
    "where several stages wrote one key, deduplication keeps one of them. With --against another "
    "checkpoint the bytes tell which layer each one really is.",
    run};

}  // namespace shw
