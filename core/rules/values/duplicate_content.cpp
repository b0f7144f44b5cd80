// Two experts or two layers with the same bytes.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/name_families.h"
#include "core/facts/reference/alike_contents.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/values/many_values.h"
#include "core/facts/values/value_pairs.h"
#include "core/rules/rules.h"
#include "core/rules/values/equal_sisters.h"
#include "core/rules/values/equal_tiles.h"

namespace shw {
namespace {

constexpr std::int64_t kMaxStacked = 4096;  // higher numbers of experts are not plausible
constexpr std::size_t kDistinct = 16;  // tensors with fewer values are new norms or zero adapters

// All tiles and their checksums as text; empty if a tile has no checksum.
std::string signature(const Facts& facts, TensorId tensor) {
  const Checkpoint& c = facts.checkpoint;
  std::string text = std::string(name(c.dtype(tensor))) + to_text(c.shape(tensor));
  std::int64_t elements = 0;
  for (ChunkId chunk : c.chunks(tensor)) {
    const Result<ItemHeader>& header = facts.headers[index_of(chunk)];
    auto part = volume(c.sizes(chunk));
    if (!part || !header || !header->payload_crc) return "";
    // The tile is a view, and the checksum covers its larger storage.
    if (header->storage_offset != 0 ||
        header->payload_length != static_cast<std::uint64_t>(*part) * size_of(header->dtype))
      return "";
    elements += *part;
    text += to_text(c.offsets(chunk)) + std::to_string(*header->payload_crc) + ' ';
  }
  return elements > static_cast<std::int64_t>(kDistinct) ? text : "";
}

// True for computed tables, which are equal in every layer that has them. In a model of several
// kinds of layers these may be few.
bool is_computed_table(std::string_view fqn) {
  constexpr std::array<std::string_view, 6> kWords{"rotary",    "inv_freq",   "freqs_cis",
                                                   "quant_map", "cos_cached", "sin_cached"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return fqn.find(word) != std::string_view::npos;
  });
}

// True for copies of the embedding and of the head, which layers for several tokens (MTP) hold.
bool is_vocabulary_of_layer(std::string_view fqn) {
  return fqn.ends_with(".embed_tokens.weight") || fqn.ends_with(".shared_head.head.weight");
}

struct Pair {
  std::string before;  // "model.layers.3.mlp.experts."
  std::uint32_t first = 0, second = 0;
  bool operator<(const Pair& other) const {
    return std::tie(before, first, second) < std::tie(other.before, other.first, other.second);
  }
};

// A tensor whose checksums equal another one's.
struct DuplicatePair {
  Pair pair;
  TensorId tensor{};
};

struct DuplicateGroup {
  std::map<Pair, std::vector<TensorId>> pairs;  // tensors of the second, equal to the first
  std::map<std::string, std::set<std::uint32_t>, std::less<>> members;
};

// Keeps tensors with more than a few values.
void keep_pairs_with_many_values(const Facts& facts, std::vector<DuplicatePair> alike,
                                 DuplicateGroup& twins) {
  std::vector<TensorId> tensors;
  for (const DuplicatePair& one : alike) tensors.push_back(one.tensor);
  std::sort(tensors.begin(), tensors.end());
  tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  const std::vector<bool> tells = have_more_values_than(facts, tensors, kDistinct);
  for (DuplicatePair& one : alike) {
    auto at = std::lower_bound(tensors.begin(), tensors.end(), one.tensor) - tensors.begin();
    if (tells[static_cast<std::size_t>(at)]) twins.pairs[std::move(one.pair)].push_back(one.tensor);
  }
}

bool may_have_a_duplicate(const Facts& facts, TensorId tensor) {
  const std::string_view fqn = facts.checkpoint.fqn(tensor);
  return !parse_state_fqn(fqn) && !is_computed_table(fqn) && !is_vocabulary_of_layer(fqn) &&
         !members_in(fqn).empty();
}

// Signatures by tensor, of those whose signature occurs more than once.
Result<std::map<TensorId, std::string>> signatures_of(const Facts& facts) {
  std::map<TensorId, std::string> signatures;
  std::vector<TensorId> unsigned_ones;
  for (TensorId tensor : each_tensor(facts)) {
    if (!may_have_a_duplicate(facts, tensor)) continue;
    std::string text = signature(facts, tensor);
    const auto elements = volume(facts.checkpoint.shape(tensor)).value_or(0);
    if (!text.empty())
      signatures.emplace(tensor, std::move(text));
    else if (elements > static_cast<std::int64_t>(kDistinct) &&
             has_comparable_values(facts, tensor))
      unsigned_ones.push_back(tensor);
  }
  SHW_TRY(auto contents, hash_similar_tensors(facts, unsigned_ones));
  signatures.merge(contents);
  return signatures;
}

// Splits the name of stacked experts: {"model.layers.2.mlp.experts.", "gate_up_proj"}.
std::optional<std::pair<std::string, std::string>> stack_name_of(std::string_view fqn) {
  constexpr std::string_view kExperts = "experts.";
  const std::size_t at = fqn.rfind(kExperts);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view after = fqn.substr(at + kExperts.size());
  if (after.empty() || (after[0] >= '0' && after[0] <= '9')) return std::nullopt;
  return std::pair(std::string(fqn.substr(0, at + kExperts.size())), std::string(after));
}

// Adds experts that are slices of one tensor.
Status add_stacked_duplicates(const Facts& facts, DuplicateGroup& twins) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<TensorId> stacks;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    ExtentsView shape = c.shape(tensor);
    const bool is_stack = shape.size() >= 3 && shape[0] >= 2 && shape[0] <= kMaxStacked &&
                          stack_name_of(fqn) && !parse_state_fqn(fqn);
    if (is_stack && has_comparable_values(facts, tensor)) stacks.push_back(tensor);
  }
  SHW_TRY(const auto equal, find_equal_slices(facts, stacks));
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const std::string before = stack_name_of(c.fqn(stacks[i]))->first;
    for (std::int64_t expert = 0; expert < c.shape(stacks[i])[0] && !equal[i].empty(); ++expert)
      twins.members[before].insert(static_cast<std::uint32_t>(expert));
    for (const EqualParts& one : equal[i])
      twins
          .pairs[{before, static_cast<std::uint32_t>(one.first),
                  static_cast<std::uint32_t>(one.second)}]
          .push_back(stacks[i]);
  }
  return {};
}

Result<DuplicateGroup> find_duplicates(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  SHW_TRY(auto signatures, signatures_of(facts));
  // The first expert with these bytes, by family, rest of the name, and bytes.
  std::map<std::tuple<std::string, std::string, std::string>, std::uint32_t> first;
  DuplicateGroup twins;
  std::vector<DuplicatePair> alike;
  for (TensorId tensor : each_tensor(facts)) {
    if (!may_have_a_duplicate(facts, tensor)) continue;
    const std::string& bytes = signatures[tensor];  // may be empty
    for (const Member& member : members_in(c.fqn(tensor))) {
      std::string before(member.before);
      twins.members[before].insert(member.index);
      if (bytes.empty()) continue;
      auto [at, added] =
          first.try_emplace({before, std::string(member.after), bytes}, member.index);
      if (added || at->second == member.index || !has_comparable_values(facts, tensor)) continue;
      alike.push_back({{before, at->second, member.index}, tensor});
    }
  }
  keep_pairs_with_many_values(facts, std::move(alike), twins);
  SHW_CHECK(add_stacked_duplicates(facts, twins));
  return twins;
}

// Number of experts after which they repeat: 3 if 0, 1, 2 equal 3, 4, 5 and so on. Empty if they do
// not repeat or are all equal, like experts initialised from one dense layer.
std::map<std::string, std::uint32_t> expert_repeat_periods(const DuplicateGroup& twins) {
  // For each expert: the one that it equals.
  std::map<std::string, std::map<std::uint32_t, std::uint32_t>> kinds;
  for (const auto& [pair, tensors] : twins.pairs) {
    if (!pair.before.ends_with("experts.")) continue;
    kinds[pair.before][pair.first] = pair.first;
    kinds[pair.before][pair.second] = pair.first;
  }
  std::map<std::string, std::uint32_t> repeating;
  for (const auto& [before, kind] : kinds) {
    const std::set<std::uint32_t>& members = twins.members.at(before);
    const auto count = static_cast<std::uint32_t>(members.size());
    // Gaps or unequal experts: not a rank's part that was repeated.
    if (kind.size() != count || *members.rbegin() + 1 != count) continue;
    std::set<std::uint32_t> different;
    for (const auto& [expert, twin] : kind) different.insert(twin);
    const auto period = static_cast<std::uint32_t>(different.size());
    const bool repeats = period > 1 && count % period == 0 &&
                         std::all_of(kind.begin(), kind.end(), [&, &kind = kind](auto one) {
                           return one.second == kind.at(one.first % period);
                         });
    if (repeats) repeating.emplace(before, period);
  }
  return repeating;
}

// In smaller families, members may be copied from one another by design.
constexpr std::size_t kFewMembers = 4;

// Equal experts or layers that are reported in one finding.
struct ReportedDuplicates {
  Finding finding = {};
  std::vector<std::string> pairs = {};

  void add(const Checkpoint& c, const Pair& pair, const std::vector<TensorId>& tensors) {
    for (TensorId tensor : tensors) finding.subjects.emplace_back(c.fqn(tensor));
    pairs.push_back(fmt::format("{}{} and {}: {}", pair.before, pair.first, pair.second,
                                plural(tensors.size(), "tensor")));
  }
  void report(Severity severity, const std::string& why, std::vector<Finding>& findings) {
    if (pairs.empty()) return;
    std::set<std::string_view> seen;  // stacked experts may be in several pairs
    std::vector<std::string> subjects;
    for (const std::string& subject : finding.subjects) {
      if (seen.insert(subject).second) subjects.push_back(subject);
    }
    finding.subjects = std::move(subjects);
    finding.rule = "duplicate-content";
    finding.severity = severity;
    finding.cause = "Modules that are trained independently hold the same bytes (" +
                    short_list_text(pairs) + "): " + why;
    finding.evidence = {{"pairs", capped(pairs)},
                        {"pair_count", count_of(pairs.size())},
                        {"tensor_count", count_of(finding.subjects.size())}};
    findings.push_back(std::move(finding));
  }
};

Status find_duplicate_content(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.headers.empty()) return {};
  SHW_TRY(const DuplicateGroup twins, find_duplicates(facts));
  std::map<std::string, std::set<std::uint32_t>, std::less<>> in_pairs;
  for (const auto& [pair, tensors] : twins.pairs) {
    in_pairs[pair.before].insert(pair.first);
    in_pairs[pair.before].insert(pair.second);
  }
  const auto repeating = expert_repeat_periods(twins);
  ReportedDuplicates sure, repeated, unsure;
  for (const auto& [pair, tensors] : twins.pairs) {
    // One equal tensor may be chance or design, but not a matrix of an expert; and if at least half
    // of a family is in pairs, it was made so: experts copied from one dense layer, or layers
    // repeated to deepen a model. A single pair of four is not.
    const std::size_t alike_members = in_pairs[pair.before].size();
    const std::size_t members = twins.members.at(pair.before).size();
    const bool exception =
        alike_members * 2 < members || (alike_members == 2 && members >= kFewMembers);
    const bool is_telling = tensors.size() >= 2 || pair.before.ends_with("experts.");
    ReportedDuplicates& told = repeating.contains(pair.before) ? repeated
                               : is_telling && exception       ? sure
                                                               : unsure;
    told.add(facts.checkpoint, pair, tensors);
  }
  sure.report(Severity::kWarning, "one rank's data was probably saved under another rank's name.",
              findings);
  if (!repeating.empty()) {
    const auto& [before, period] = *repeating.begin();
    repeated.report(
        Severity::kWarning,
        fmt::format(
            "the experts repeat every {}. The {} experts of one expert-parallel rank were saved "
            "under all expert numbers, and those of the other ranks are not in this checkpoint.",
            period, period),
        findings);
  }
  unsure.report(
      Severity::kInfo,
      "either copied on purpose at the start of training, or one was saved under the other's name.",
      findings);
  SHW_CHECK(report_equal_siblings(facts, findings));
  return report_equal_tiles(facts, findings);
}

}  // namespace

const Rule kDuplicateContent = {
    .id = "duplicate-content",
    .depth = Depth::kData,
    .title = "Two experts, layers or chunks hold the same bytes",
    .teaches =
        "Experts and layers start from different random numbers and drift apart, so two with equal "
        "bytes in several tensors are one, saved twice: a rank wrote its data under another's "
        "number, and the other's data is lost. Tensors with 16 values or fewer (norms at one, "
        "adapters at zero) are ignored. Models built by copying (experts from one dense layer, "
        "repeated layers) are equal in half of their modules or more, in more than one pair: that "
        "is only a hint. Experts that repeat after a fixed number are always a warning: one rank's "
        "experts are under all numbers. Checksums are compared, so only equal tensors are read; if "
        "a format has no checksums, tensors that begin the same are read. The same applies to two "
        "chunks of one tensor.",
    .lesson = {.drawing = R"(
  expert       0      1      2      3
  checksum   a31f   77c0   a31f   09be      2 is a copy of 0
)",
               .remedy = "Take the module that was overwritten from an earlier checkpoint; its "
                         "values are not in this one."},
    .hint = {.what = "whether equal modules or chunks are one that was saved twice",
             .needs = "--against an earlier step",
             .remains_open_with_spec = true,
             .remains_open_at_data = true},
    .run_shared = find_duplicate_content,
};

}  // namespace shw
