// A family of layers or experts with a missing number, or with fewer members than its siblings.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/name_families.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Views into the checkpoint's names: freeing copies for 250,000 tensors would take 0.1
// s.
using Suffixes = std::vector<std::string_view>;  // in order, each once
// Key: index; value: names of the member's tensors.
using Family = std::map<std::uint32_t, Suffixes>;
using FamiliesByName = std::map<std::string_view, Family>;

FamiliesByName families_in(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  FamiliesByName families;
  auto add = [&](std::string_view fqn) {
    if (parse_state_fqn(fqn) || fqn.find("lora") != std::string_view::npos) return;
    for (const Member& member : find_members(fqn, is_counted_number))
      families[member.before][member.index].push_back(member.after);
  };
  for (TensorId tensor : each_tensor(facts)) add(c.fqn(tensor));
  auto objects = c.objects();
  for (const NonTensorEntry& object : each_of(objects, facts)) add(object.fqn);
  for (auto& [prefix, family] : families) {
    for (auto& [index, suffixes] : each_of(family, facts)) {
      std::sort(suffixes.begin(), suffixes.end());
      suffixes.erase(std::unique(suffixes.begin(), suffixes.end()), suffixes.end());
    }
  }
  return families;
}

// Rows of plain modules have gaps for activations: only composite members count.
bool has_only_nested_suffixes(const Suffixes& suffixes) {
  return std::all_of(suffixes.begin(), suffixes.end(), [](std::string_view suffix) {
    return suffix.empty() || std::count(suffix.begin(), suffix.end(), '.') >= 2;
  });
}

// Missing numbers between first and last member; empty for mixed families, or if there are too many
// gaps.
std::vector<std::uint32_t> holes_in(const Family& family) {
  std::uint32_t first = family.begin()->first, last = family.rbegin()->first;
  std::uint64_t there = family.size(), all = std::uint64_t{last} - first + 1;
  if (there < 4 || all == there || (all - there) * 4 > there) return {};
  std::vector<std::uint32_t> holes;
  for (auto at = family.begin(), next = std::next(at); next != family.end(); ++at, ++next) {
    if (next->first == at->first + 1) continue;
    if (at->second != next->second || !has_only_nested_suffixes(at->second)) return {};
    for (std::uint32_t index = at->first + 1; index < next->first; ++index) holes.push_back(index);
  }
  return holes;
}

bool is_any_suffix_in_spec(const Spec* spec, std::string_view prefix, std::uint32_t index,
                           const Suffixes& suffixes) {
  if (spec == nullptr) return true;
  return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view suffix) {
    return spec->find(fmt::format("{}{}{}", prefix, index, suffix)) != nullptr;
  });
}

void add_holes(const Facts& facts, const FamiliesByName& families, std::vector<Finding>& findings) {
  Finding finding{.rule = "keyset-hole"};
  // A file of a multi-file model has only some of the layers, and a pipeline stage may be saved
  // alone or alternate with other layer kinds: only a hint.
  finding.severity = Severity::kInfo;
  std::string first;
  for (const auto& [prefix, family] : each_of(families, facts)) {
    if (!is_counted_without_gaps(prefix)) continue;
    for (std::uint32_t hole : holes_in(family)) {
      auto after = family.upper_bound(hole);
      if (!is_any_suffix_in_spec(facts.spec, prefix, hole, after->second)) continue;
      finding.subjects.push_back(fmt::format("{}{}", prefix, hole));
      if (first.empty())
        first = fmt::format("{}* has {} from {} to {}", prefix, plural(family.size(), "member"),
                            family.begin()->first, family.rbegin()->first);
    }
  }
  if (finding.subjects.empty()) return;
  finding.cause = short_list_text(finding.subjects) +
                  (finding.subjects.size() == 1 ? " is" : " are") +
                  " missing from the middle of a numbered list of equal modules (" + first +
                  "): its tensors were not saved.";
  finding.evidence = {{"missing", capped(finding.subjects)},
                      {"count", count_of(finding.subjects.size())},
                      {"family", first}};
  findings.push_back(std::move(finding));
}

// Reports families of one kind (the experts of each layer) of which a few are smaller.
void report_smaller_families(const Facts& facts, const FamiliesByName& families,
                             std::vector<Finding>& findings) {
  std::map<std::string, std::map<std::size_t, std::vector<std::string>>> sizes;
  for (const auto& [prefix, family] : each_of(families, facts)) {
    std::string kind = without_numbers(prefix);
    if (kind.find('*') != std::string::npos && kind.find("experts.") != std::string::npos)
      sizes[kind][family.size()].emplace_back(prefix);
  }
  Finding finding{.rule = "keyset-hole", .severity = Severity::kInfo};
  std::vector<std::string> how;
  for (const auto& [kind, by_size] : sizes) {
    if (by_size.size() < 2 || by_size.rbegin()->second.size() < 3) continue;
    for (const auto& [size, prefixes] : by_size) {
      if (size == by_size.rbegin()->first) continue;
      for (const std::string& prefix : prefixes) {
        finding.subjects.push_back(prefix.substr(0, prefix.size() - 1));
        how.push_back(fmt::format("{}*: {} of {}", prefix, size, by_size.rbegin()->first));
      }
    }
  }
  if (how.empty()) return;
  finding.cause = "Some layers have fewer experts than most (" + how.front() +
                  "): the model may be designed so, or the last experts were not saved.";
  finding.evidence = {{"families", capped(how)}, {"count", count_of(how.size())}};
  findings.push_back(std::move(finding));
}

// The names that most members have; null unless at least seven of eight members have them, or if
// all have.
const Suffixes* common_suffixes(const Family& family) {
  constexpr std::size_t kMinMembers = 8;
  if (family.size() < kMinMembers) return nullptr;
  // Members that are equal are mostly neighbours, so one of three in the middle has the names.
  const auto middle = std::next(family.begin(), static_cast<std::ptrdiff_t>(family.size() / 2));
  for (auto at = std::prev(middle); at != std::next(middle, 2); ++at) {
    const auto equal = static_cast<std::size_t>(
        std::count_if(family.begin(), family.end(),
                      [&](const auto& member) { return member.second == at->second; }));
    if (equal != family.size() && equal * 8 >= family.size() * 7) return &at->second;
  }
  return nullptr;
}

bool is_matrix(const Checkpoint& c, const std::string& fqn) {
  const auto tensor = c.find(fqn);
  return tensor && c.shape(*tensor).size() >= 2;
}

// Weights that a member lacks and its neighbours and nearly all others have. A member with names of
// its own may be made otherwise. The first and the last one may lack norms (ModernBERT's first
// layer has none before its attention), so only matrices count there.
void add_lost_weights(const Checkpoint& c, const std::string_view prefix, const Family& family,
                      std::vector<std::string>& lost) {
  const Suffixes* const common = common_suffixes(family);
  if (common == nullptr) return;
  for (auto at = family.begin(); at != family.end(); ++at) {
    const Suffixes& own = at->second;
    const bool is_first = at == family.begin(), is_last = std::next(at) == family.end();
    if (own == *common || own.size() * 2 < common->size() ||
        (!is_first && std::prev(at)->second != *common) ||
        (!is_last && std::next(at)->second != *common) ||
        !std::includes(common->begin(), common->end(), own.begin(), own.end()))
      continue;
    Suffixes missing;
    std::set_difference(common->begin(), common->end(), own.begin(), own.end(),
                        std::back_inserter(missing));
    // Scales of quantised weights are checked with their weights.
    if (!std::all_of(missing.begin(), missing.end(),
                     [](std::string_view suffix) { return suffix.ends_with(".weight"); }))
      continue;
    const std::uint32_t beside = is_first ? std::next(at)->first : std::prev(at)->first;
    const bool are_matrices =
        std::all_of(missing.begin(), missing.end(), [&](std::string_view suffix) {
          return is_matrix(c, fmt::format("{}{}{}", prefix, beside, suffix));
        });
    if ((is_first || is_last) && !are_matrices) continue;
    for (std::string_view suffix : missing)
      lost.push_back(fmt::format("{}{}{}", prefix, at->first, suffix));
  }
}

// True if something better than the other members tells which names a model has.
bool has_authority_for_names(const Facts& facts) {
  return facts.spec != nullptr || facts.reference != nullptr ||
         (facts.config_fit && facts.config_fit->unknown_model.empty());
}

// Reports single weights that one of many equal members of a row lacks.
void add_incomplete(const Facts& facts, const FamiliesByName& families,
                    std::vector<Finding>& findings) {
  if (has_authority_for_names(facts)) return;
  std::vector<std::string> lost;
  for (const auto& [prefix, family] : each_of(families, facts))
    add_lost_weights(facts.checkpoint, prefix, family, lost);
  // The lists of layers and of a layer's experts both tell.
  std::sort(lost.begin(), lost.end());
  lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
  if (lost.empty()) return;
  Finding finding{.rule = "keyset-hole", .severity = Severity::kWarning};
  finding.cause = fmt::format(
      "{} {} missing, though nearly all other modules of the same list have {}. Unless the model "
      "is designed so, a load fails or initializes {} at random.",
      short_list_text(lost), lost.size() == 1 ? "is" : "are", lost.size() == 1 ? "it" : "them",
      lost.size() == 1 ? "it" : "them");
  finding.evidence = {{"missing", capped(lost)}, {"count", count_of(lost.size())}};
  finding.subjects = std::move(lost);
  findings.push_back(std::move(finding));
}

void find_keyset_holes(const Facts& facts, std::vector<Finding>& findings) {
  FamiliesByName families = families_in(facts);
  add_incomplete(facts, families, findings);
  add_holes(facts, families, findings);
  report_smaller_families(facts, families, findings);
}

}  // namespace

const Rule kKeysetHole = {
    .id = "keyset-hole",
    .depth = Depth::kMetadata,
    .title = "A layer, an expert or one of its weights is missing",
    .teaches =
        "Layers and experts are numbered from 0 without gaps. If a number is missing between two "
        "equal neighbours, the rank or pipeline stage that held it did not take part in the save, "
        "or its tensors were renamed. Lists of mixed modules (dense layers before expert layers, "
        "activations without weights) are not reported, and neither is a number that the spec does "
        "not name. A weight that only one of many equal layers lacks is reported if no "
        "config.json, spec or other checkpoint gives the names. Nothing can be restored from this "
        "checkpoint; look for the tensors under another name, or in the files of the rank that "
        "held them.",
    .lesson = {.drawing = R"(
  layers.0   layers.1   layers.2      -       layers.4
     x          x          x       missing       x
)",
               .remedy = "Look for its tensors under another name, or in the files of the rank "
                         "that held them."},
    .words = {.text = "not there"},
    .hint = {.what = "whether numbered modules are missing",
             .needs = "--spec or --against",
             .remains_open_at_data = true},
    .subjects = SubjectKind::kAbsentTensors,
    .run = find_keyset_holes,
};

}  // namespace shw
