// Values that all ranks should hold equally but do not. Only per-rank files show this, since a
// sharded save keeps one copy; and replicas of a tile that several ranks wrote into one checkpoint.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/states/per_rank_masters.h"
#include "core/facts/values/value_reader.h"
#include "core/formats/replicas.h"
#include "core/model/state_path.h"
#include "core/rules/rules.h"
#include "core/rules/values/diverged_copies.h"
#include "core/rules/values/rank_copies.h"

namespace shw {
namespace {

// Key of the place on the mesh axes that cut the tensor. Empty if it is not a replica: a plain
// tensor, a partial sum, or a rank outside its mesh.
std::optional<std::string> replica_key_of(const TorchFileTensor& tensor) {
  if (!tensor.sharding || !tensor.sharding->coordinate) return std::nullopt;
  const DTensorSharding& sharding = *tensor.sharding;
  if (sharding.coordinate->size() != sharding.placements.size()) return std::nullopt;
  bool replicated = false;
  std::string text = to_text(sharding.global_shape) + to_text(tensor.sizes);
  for (std::int64_t rank : sharding.mesh.ranks) text += " " + std::to_string(rank);
  for (std::size_t d = 0; d < sharding.placements.size(); ++d) {
    const std::string& placement = sharding.placements[d];
    bool alike = placement == "Replicate()";
    bool cut = placement.starts_with("Shard(") || placement.starts_with("_StridedShard(");
    if (!alike && !cut) return std::nullopt;
    replicated = replicated || alike;
    text += "; " + placement + (cut ? fmt::format(" at {}", (*sharding.coordinate)[d]) : "");
  }
  return replicated ? std::optional(text) : std::nullopt;
}

struct DivergedCopies {
  std::vector<std::string> subjects, how, histograms, unread;
  std::int64_t groups = 0, far = 0;
  bool astray = false;  // more than 1 % of elements differ by more than 1 %
  double largest = 0;
};

void add_copies(const std::string& place, const RankCopies& copies, const ComparedCopies& compared,
                DivergedCopies& found) {
  if (!compared.is_read) {
    found.unread.push_back(place);
    return;
  }
  ++found.groups;
  bool reported = false;
  for (std::size_t i = 1; i < copies.size(); ++i) {
    const CopyDivergence& seen = compared.from_first[i - 1];
    if (seen.differing == 0) continue;
    found.far += seen.far;
    found.astray = found.astray || seen.far * 100 > seen.elements;
    found.largest = std::max(found.largest, seen.largest);
    std::string who =
        fmt::format("{}: rank {} and rank {}", place, copies[i].rank, copies.front().rank);
    if (!reported) {
      found.how.push_back(who + " differ in " +
                          human_count(static_cast<std::uint64_t>(seen.differing)) + " of " +
                          human_count(static_cast<std::uint64_t>(seen.elements)) + " elements");
    }
    reported = true;
    found.histograms.push_back(who + ": " + histogram_text(seen));
    add_subject(found.subjects, copies[i].file->path);
  }
}

// Tensors that several ranks hold equally, by key of their place.
struct EqualCopies {
  std::vector<std::string> places;
  std::vector<RankCopies> copies;
};

EqualCopies find_equal_copies(const std::map<std::int64_t, RankTensors>& files) {
  std::map<std::pair<std::string, std::string>, RankCopies> groups;
  for (const auto& [rank, file] : files) {
    for (const TorchFileTensor& tensor : file.tensors) {
      bool own = !tensor.sharding || !tensor.sharding->rank || *tensor.sharding->rank == rank;
      auto holder = own ? replica_key_of(tensor) : std::nullopt;
      if (holder) groups[{dotted_path(tensor.path), *holder}].push_back({rank, &file, &tensor});
    }
  }
  EqualCopies out;
  for (auto& [group, copies] : groups) {
    const Dtype dtype = copies.front().tensor->dtype;
    bool alike = std::all_of(copies.begin(), copies.end(),
                             [&](const RankCopy& copy) { return copy.tensor->dtype == dtype; });
    if (copies.size() < 2 || !alike || !has_values(dtype)) continue;
    out.places.push_back(group.first);
    out.copies.push_back(std::move(copies));
  }
  return out;
}

void add_unread(const DivergedCopies& found, std::vector<Finding>& findings) {
  if (found.unread.empty()) return;
  Finding finding{.rule = std::string(kNotLookedAt.id), .severity = Severity::kInfo};
  finding.cause = plural(found.unread.size(), "tensor") +
                  " that should be equal on all ranks could not be compared in their files (" +
                  short_list_text(found.unread) + "): they cannot be read, or are unordered and " +
                  "too large to be sorted in memory.";
  finding.evidence = {{"tensors", capped(found.unread)}, {"count", count_of(found.unread.size())}};
  finding.subjects = found.unread;
  findings.push_back(std::move(finding));
}

Status find_diverged_replicas(const Facts& facts, std::vector<Finding>& findings) {
  std::map<std::int64_t, RankTensors> files = read_rank_files(facts.checkpoint);
  if (files.size() < 2) return {};
  const EqualCopies alike = find_equal_copies(files);
  SHW_TRY(auto compared, compare_copies(facts, alike.copies));
  DivergedCopies found;
  for (std::size_t i = 0; i < compared.size(); ++i)
    add_copies(alike.places[i], alike.copies[i], compared[i], found);
  add_unread(found, findings);
  if (found.how.empty()) return {};
  Finding finding{.rule = "replica-diverge"};
  // Sums in another order differ in their last bits, which near zero are all bits.
  finding.severity = found.astray ? Severity::kWarning : Severity::kInfo;
  std::sort(found.subjects.begin(), found.subjects.end());
  found.subjects.erase(std::unique(found.subjects.begin(), found.subjects.end()),
                       found.subjects.end());
  finding.subjects = std::move(found.subjects);
  finding.cause = plural(found.how.size(), "tensor") +
                  " that should be equal on all ranks differ between their files (" +
                  short_list_text(found.how) + "): " +
                  (finding.severity == Severity::kWarning
                       ? "a gradient was not reduced over these ranks, or one rank diverged."
                       : "the differences are as small as those from a different summation order.");
  finding.evidence = {{"tensors", capped(found.how)},
                      {"count", count_of(found.how.size())},
                      {"tensors_looked_at", found.groups},
                      {"largest_difference", found.largest},
                      {"elements_over_1_percent_apart", found.far},
                      {"steps_between", capped(found.histograms)},
                      {"tensors_left_out", count_of(found.unread.size())},
                      {"what_to_do",
                       "no safe remedy: each rank trained with its own copy, and none is the right "
                       "one. Choose one rank's copy, or average them"}};
  findings.push_back(std::move(finding));
  return {};
}

Status find_diverged(const Facts& facts, std::vector<Finding>& findings) {
  SHW_CHECK(find_diverged_replicas(facts, findings));
  find_diverged_copies(facts, findings);
  return {};
}

}  // namespace

const Rule kReplicaDiverge = {
    .id = "replica-diverge",
    .depth = Depth::kData,
    .title = "Replicated tensors differ between ranks",
    .teaches =
        "A replicated tensor is equal on all ranks while its gradient is reduced over them. "
        "Without that reduction the copies drift apart, and a sharded save silently keeps one. "
        "Per-rank files (optimizer_rank_0.pt) show it: tensors whose pickled placements say "
        "Replicate are compared. Differences in the last bits come from a different summation "
        "order and are only a hint. No repair is safe: choosing one rank discards the others.",
    .lesson = {.drawing = R"(
  rank          0        1        2        3       placements say Replicate
  exp_avg    0.0131   0.0131   0.0131   0.0208     rank 3 went its own way
)",
               .remedy = "Choose one rank's copy, or average them: no copy is known to be right.",
               .link = "https://github.com/pytorch/torchtitan/issues/2387"},
    .run_shared = find_diverged,
};

}  // namespace shw
