// P18: what every rank was to hold alike, and they do not. Only files of single ranks show it: a
// sharded save keeps one copy. And copies of one tile that several ranks wrote into one checkpoint.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/side_masters.h"
#include "core/facts/value_reader.h"
#include "core/formats/replicas.h"
#include "core/rules/rules.h"
#include "core/tensor/element_difference.h"

namespace shw {
namespace {

constexpr std::uint64_t kPerTensor = std::uint64_t{64} << 20, kInAll = std::uint64_t{1} << 30;
constexpr std::array<std::uint64_t, 5> kSteps{1, 2, 16, 256, 65536};

struct Copy {
  std::int64_t rank = 0;
  const RankTensors* file = nullptr;
  const SideTensor* tensor = nullptr;
};

// Where the local tensor stands on the axes that cut it; nothing where it is no replica of anything
// (a plain tensor, a partial sum, a rank that its mesh does not know).
std::optional<std::string> holder_of(const SideTensor& tensor) {
  if (!tensor.sharding || !tensor.sharding->coordinate) return std::nullopt;
  const SideSharding& sharding = *tensor.sharding;
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

struct Divergence {
  std::int64_t elements = 0, differing = 0, far = 0;
  double largest = 0;
  std::array<std::int64_t, kSteps.size()> histogram{};
};

template <class Bits>
void compare_copies(Dtype dtype, BytesView a, BytesView b, Divergence& out) {
  for (std::size_t i = 0; i < a.size() / sizeof(Bits); ++i) {
    Bits x = bits_at<Bits>(a, i), y = bits_at<Bits>(b, i);
    if (x == y) continue;
    ++out.differing;
    std::uint64_t steps = steps_between(dtype, x, y);
    auto bucket = std::upper_bound(kSteps.begin(), kSteps.end(), steps) - kSteps.begin();
    ++out.histogram[static_cast<std::size_t>(std::max<std::ptrdiff_t>(bucket, 1) - 1)];
    double first = value_at(dtype, a, i), second = value_at(dtype, b, i);
    double apart = std::abs(first - second);
    if (std::isfinite(apart)) out.largest = std::max(out.largest, apart);
    if (!(apart <= 0.01 * std::max(std::abs(first), std::abs(second)))) ++out.far;
  }
}

Divergence compare_copies(Dtype dtype, BytesView a, BytesView b) {
  Divergence out;
  std::size_t width = size_of(dtype);
  out.elements = static_cast<std::int64_t>(a.size() / width);
  if (width == 8) compare_copies<std::uint64_t>(dtype, a, b, out);
  if (width == 4) compare_copies<std::uint32_t>(dtype, a, b, out);
  if (width == 2) compare_copies<std::uint16_t>(dtype, a, b, out);
  return out;
}

std::string histogram_text(const Divergence& seen) {
  constexpr std::array<const char*, kSteps.size()> kNames{"1", "2 to 15", "16 to 255",
                                                          "256 to 65,535", "65,536 and more"};
  std::string text;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (seen.histogram[i] == 0) continue;
    text += (text.empty() ? "" : ", ") +
            human_count(static_cast<std::uint64_t>(seen.histogram[i])) + " by " + kNames[i] +
            " ULP";
  }
  return text;
}

struct DivergedCopies {
  std::vector<std::string> subjects, how, histograms;
  std::int64_t groups = 0, left_out = 0, far = 0;
  bool astray = false;  // more than one element in a hundred is more than 1 % apart
  double largest = 0;
  std::uint64_t left = kInAll;
};

std::optional<Bytes> read(const Copy& copy, DivergedCopies& found) {
  auto bytes = read_side_elements(*copy.file->source, *copy.tensor);
  if (!bytes) {
    ++found.left_out;
    return std::nullopt;
  }
  found.left -= std::min<std::uint64_t>(found.left, bytes->size());
  return std::move(*bytes);
}

void look_at_copies(const std::string& place, const std::vector<Copy>& copies,
                    DivergedCopies& found) {
  const SideTensor& first = *copies.front().tensor;
  std::uint64_t size =
      static_cast<std::uint64_t>(volume(first.sizes).value_or(0)) * size_of(first.dtype);
  if (size == 0 || !has_values(first.dtype)) return;
  if (size > kPerTensor || size * copies.size() > found.left) {
    ++found.left_out;
    return;
  }
  ++found.groups;
  auto reference = read(copies.front(), found);
  if (!reference) return;
  bool reported = false;
  for (std::size_t i = 1; i < copies.size(); ++i) {
    auto bytes = read(copies[i], found);
    if (!bytes || bytes->size() != reference->size() || *bytes == *reference) continue;
    Divergence seen = compare_copies(first.dtype, *reference, *bytes);
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

void find_diverged_replicas(const Facts& facts, std::vector<Finding>& findings) {
  std::map<std::int64_t, RankTensors> files = read_rank_files(facts.checkpoint);
  if (files.size() < 2) return;
  std::map<std::pair<std::string, std::string>, std::vector<Copy>> groups;
  for (const auto& [rank, file] : files) {
    for (const SideTensor& tensor : file.tensors) {
      bool own = !tensor.sharding || !tensor.sharding->rank || *tensor.sharding->rank == rank;
      auto holder = own ? holder_of(tensor) : std::nullopt;
      if (holder) groups[{place_of(tensor.path), *holder}].push_back({rank, &file, &tensor});
    }
  }
  DivergedCopies found;
  for (const auto& group : groups) {
    const std::vector<Copy>& copies = group.second;
    bool alike = std::all_of(copies.begin(), copies.end(), [&](const Copy& copy) {
      return copy.tensor->dtype == copies.front().tensor->dtype;
    });
    if (copies.size() > 1 && alike) look_at_copies(group.first.first, copies, found);
  }
  if (found.how.empty()) return;
  Finding finding;
  finding.rule = "replica-diverge";
  // Sums in another order end in other last bits, and around zero those are all there is.
  finding.severity = found.astray ? Severity::kWarning : Severity::kInfo;
  std::sort(found.subjects.begin(), found.subjects.end());
  found.subjects.erase(std::unique(found.subjects.begin(), found.subjects.end()),
                       found.subjects.end());
  finding.subjects = std::move(found.subjects);
  finding.cause = plural(found.how.size(), "tensor") +
                  " that ranks were to hold alike differ between their files (" +
                  some_of(found.how) + "): " +
                  (finding.severity == Severity::kWarning
                       ? "a gradient was not reduced over these ranks, or one of them went astray."
                       : "sums in another order, by the size of it.");
  finding.evidence = {{"tensors", capped(found.how)},
                      {"count", count_of(found.how.size())},
                      {"tensors_looked_at", found.groups},
                      {"largest difference", found.largest},
                      {"elements more than 1 % apart", found.far},
                      {"steps between", capped(found.histograms)},
                      {"tensors_left_out", found.left_out},
                      {"what to do",
                       "no safe remedy: each rank went on with its own, and none of them is the "
                       "right one. Choose one rank, or average them"}};
  findings.push_back(std::move(finding));
}

// Copies of one tile in one checkpoint: loading takes one of them and says nothing of the others.
void find_diverged_copies(const Facts& facts, std::vector<Finding>& findings) {
  Finding finding, unread;
  finding.rule = "replica-diverge";
  std::vector<std::string> how;
  for (const auto& [tensor, doubt] : facts.replica_doubts) {
    std::string fqn(facts.checkpoint.fqn(tensor));
    (doubt.differ ? finding : unread).subjects.push_back(fqn);
    if (doubt.differ) how.push_back(fqn + ": " + doubt.words);
    if (!doubt.differ && unread.cause.empty()) unread.cause = fqn + ": " + doubt.words;
  }
  if (!unread.subjects.empty()) {
    unread.rule = kNotLookedAt.id;
    unread.severity = Severity::kInfo;
    unread.cause = "Copies of tiles of " + plural(unread.subjects.size(), "tensor") +
                   " could not be compared (" + unread.cause + ").";
    findings.push_back(std::move(unread));
  }
  if (how.empty()) return;
  finding.cause = "Ranks saved the same elements of " + plural(how.size(), "tensor") +
                  ", and nobody knows whose are right (" + some_of(how) + ").";
  finding.evidence = {{"copies", capped(how)}, {"count", count_of(how.size())}};
  findings.push_back(std::move(finding));
}

void find_diverged(const Facts& facts, std::vector<Finding>& findings) {
  find_diverged_replicas(facts, findings);
  find_diverged_copies(facts, findings);
}

}  // namespace

const Rule kReplicaDiverge = {
    .id = "replica-diverge",
    .depth = Depth::kData,
    .title = "What ranks were to hold alike differs",
    .teaches =
        "A tensor that is replicated over ranks is the same on each of them as long as its "
        "gradient is reduced over them. Where that was left out the copies drift apart, and a "
        "sharded save keeps one and says nothing. Files of single ranks (optimizer_rank_0.pt) show "
        "it: tensors whose pickled placements say Replicate are compared. Differences in the last "
        "bits come from sums in another order and are only said. No repair is right: choosing a "
        "rank throws the others away.",
    .lesson =
        {.drawing = R"(
  rank          0        1        2        3       placements say Replicate
  exp_avg    0.0131   0.0131   0.0131   0.0208     rank 3 went its own way
)",
         .remedy =
             "Nothing is right by itself: choose one rank's copy, or average them, and say so.",
         .link = "https://github.com/pytorch/torchtitan/issues/2387"},
    .run = find_diverged,
};

}  // namespace shw
