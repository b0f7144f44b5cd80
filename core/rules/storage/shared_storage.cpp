// Two items that reference the same bytes. torch writes an item for every tile, also of tied
// tensors (deduplication removes replicas of a tensor, never another tensor), so one record was
// overwritten by a copy of another. The exception are tools that store tied tensors once: then all
// tiles of both are shared, and no bytes are left over.
#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"
#include "core/rules/storage/equal_files.h"
#include "core/rules/storage/linked_files.h"
#include "core/rules/storage/storage_homes.h"

namespace shw {
namespace {

std::string words_of(const Checkpoint& checkpoint, const Claim& claim) {
  if (!claim.is_chunk()) return std::string(fqn_of(checkpoint, claim));
  return chunk_text(checkpoint, checkpoint.tensor_of(claim.chunk), claim.chunk);
}

std::string words_of(const Checkpoint& checkpoint, const SharedRange& range) {
  std::vector<std::string> claims;
  for (const Claim& claim : range.claims) {
    claims.push_back(words_of(checkpoint, claim));
    if (range.partial)
      claims.back() += " (" + place_text(checkpoint, place_of(checkpoint, claim)) + ")";
  }
  std::string who = claims.size() == 2 ? claims[0] + " and " + claims[1] : short_list_text(claims);
  return range.partial ? who : who + ": " + place_text(checkpoint, range.place);
}

void add_claims(const Checkpoint& checkpoint, const SharedRange& range,
                std::set<std::string>& subjects) {
  for (const Claim& claim : range.claims) subjects.emplace(fqn_of(checkpoint, claim));
}

Finding shared_finding(const Checkpoint& checkpoint,
                       const std::vector<const SharedRange*>& ranges) {
  Finding finding{.rule = "shared-storage"};
  std::set<std::string> subjects;
  std::vector<std::string> lines;
  for (const SharedRange* range : ranges) {
    add_claims(checkpoint, *range, subjects);
    if (lines.size() < kMaxEvidence) lines.push_back(words_of(checkpoint, *range));
  }
  finding.subjects.assign(subjects.begin(), subjects.end());
  finding.evidence = {{"shared", lines}, {"count", count_of(ranges.size())}};
  return finding;
}

void report_tied(const Checkpoint& checkpoint, const std::vector<const SharedRange*>& ranges,
                 std::vector<Finding>& findings) {
  if (ranges.empty()) return;
  Finding finding = shared_finding(checkpoint, ranges);
  finding.severity = Severity::kInfo;
  finding.cause = short_list_text(finding.subjects) +
                  " have the same bytes, chunk by chunk: right for tied tensors that a tool stored "
                  "once, wrong for any others.";
  findings.push_back(std::move(finding));
}

using RangesWithHome = std::vector<std::pair<const SharedRange*, Home>>;

void report_ranges_with_home(const Checkpoint& checkpoint, const RangesWithHome& solved,
                             std::vector<Finding>& findings) {
  if (solved.empty()) return;
  std::vector<const SharedRange*> ranges;
  std::vector<std::string> homes;
  std::map<TensorId, WrongItemRecords> by_tensor;
  for (const auto& [range, home] : solved) {
    ranges.push_back(range);
    TensorId tensor = checkpoint.tensor_of(home.moves);
    homes.push_back(chunk_text(checkpoint, tensor, home.moves) + ": " +
                    place_text(checkpoint, home.home));
    WrongItemRecords& repointed = by_tensor[tensor];
    repointed.tensor = tensor;
    repointed.places.push_back({home.moves, home.home.file,
                                static_cast<std::uint64_t>(home.home.offset),
                                static_cast<std::uint64_t>(home.home.length)});
  }
  Finding finding = shared_finding(checkpoint, ranges);
  finding.cause = "The records of two chunks point to the same bytes (" +
                  words_of(checkpoint, *ranges.front()) + (ranges.size() > 1 ? ", ..." : "") +
                  "). No record points to the bytes that belong to one of them (" +
                  short_list_text(homes) +
                  "). It loads the other chunk's elements without an error.";
  finding.evidence.emplace_back("homes", capped(homes));
  finding.remedy = Remedy{"relabel", true,
                          "Let " + plural(solved.size(), "record") +
                              " point to the bytes that no record uses: the items there have the "
                              "shape and dtype that are missing. No byte moves."};
  for (auto& [tensor, repointed] : by_tensor) finding.diagnoses.emplace_back(std::move(repointed));
  findings.push_back(std::move(finding));
}

void report_ranges_without_home(const Facts& facts, const std::vector<const SharedRange*>& ranges,
                                const std::vector<std::string>& candidates,
                                std::vector<Finding>& findings) {
  if (ranges.empty()) return;
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding = shared_finding(checkpoint, ranges);
  bool partial = std::all_of(ranges.begin(), ranges.end(), [](auto* r) { return r->partial; });
  finding.cause = std::string("Two records name ") + (partial ? "overlapping" : "the same") +
                  " bytes (" + words_of(checkpoint, *ranges.front()) +
                  (ranges.size() > 1 ? ", ..." : "") + "), so at least one of them is wrong. ";
  std::vector<std::string> homes;
  for (const ItemPlace& place : unclaimed_item_places(facts))
    homes.push_back(place_text(checkpoint, place));
  bool no_headers = facts.headers.empty();
  if (homes.empty())
    finding.cause += "The data files have no unused range that could belong to the other chunk.";
  else if (no_headers)
    finding.cause += "Bytes that no record uses may belong to the other chunk (" +
                     short_list_text(homes) + "): --depth headers reads them.";
  else if (!candidates.empty())
    finding.cause += "It cannot be decided between " + short_list_text(candidates) + ".";
  else
    finding.cause += "None of the byte ranges that no record uses (" + short_list_text(homes) +
                     ") matches exactly.";
  if (!homes.empty()) finding.evidence.emplace_back("unclaimed", capped(homes));
  if (!candidates.empty()) finding.evidence.emplace_back("candidates", capped(candidates));
  findings.push_back(std::move(finding));
}

struct ClassifiedRanges {
  RangesWithHome solved;
  std::vector<const SharedRange*> open, tied;
  std::vector<std::string> candidates;
};

ClassifiedRanges classify_ranges(const Facts& facts, const std::vector<SharedRange>& shared) {
  const Checkpoint& checkpoint = facts.checkpoint;
  ItemRelocator finder(facts, shared);
  std::vector<ItemPlace> left = unclaimed_item_places(facts);
  ClassifiedRanges judged;
  for (const SharedRange& range : each_of(shared, facts)) {
    std::vector<Home> homes;
    if (!facts.headers.empty()) homes = finder.possible_item_places(range);
    if (homes.size() == 1) {
      judged.solved.emplace_back(&range, homes.front());
      continue;
    }
    for (const Home& home : homes)
      judged.candidates.push_back(words_of(checkpoint, Claim{home.moves}) + " in " +
                                  place_text(checkpoint, home.home));
    // Without headers, lengths are compared: items of equal shape and dtype have equal lengths.
    bool has_room = std::any_of(left.begin(), left.end(), [&](const ItemPlace& place) {
      return facts.headers.empty() && place.length == range.place.length;
    });
    bool tied = homes.empty() && !has_room && is_tied(checkpoint, range);
    (tied ? judged.tied : judged.open).push_back(&range);
  }
  return judged;
}

// Moves ranges from `solved` back to `open` if two of them were assigned to one place in a file.
void resolve_conflicts(ClassifiedRanges& judged) {
  std::map<std::pair<FileId, std::int64_t>, int> wanted;
  auto key = [](const auto& one) {
    return std::pair(one.second.home.file, one.second.home.offset);
  };
  for (const auto& one : judged.solved) ++wanted[key(one)];
  std::erase_if(judged.solved, [&](const auto& one) {
    bool twice = wanted[key(one)] > 1;
    if (twice) judged.open.push_back(one.first);
    return twice;
  });
}

void find_shared_storage(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (!checkpoint.format().traits.has_index || checkpoint.directory() == nullptr) return;
  report_equal_files(facts, findings);
  std::vector<SharedRange> shared =
      find_shared_ranges(checkpoint, facts.progress, first_file_per_inode(checkpoint));
  auto linked = std::stable_partition(shared.begin(), shared.end(), [&](const SharedRange& range) {
    return !spans_files(checkpoint, range);
  });
  report_linked_files(facts, {linked, shared.end()}, findings);
  shared.erase(linked, shared.end());
  if (shared.empty()) return;
  ClassifiedRanges judged = classify_ranges(facts, shared);
  resolve_conflicts(judged);
  report_ranges_with_home(checkpoint, judged.solved, findings);
  report_ranges_without_home(facts, judged.open, judged.candidates, findings);
  report_tied(checkpoint, judged.tied, findings);
}

}  // namespace

const Rule kSharedStorage = {
    .id = "shared-storage",
    .depth = Depth::kMetadata,
    .title = "Two chunks point to the same stored bytes",
    .teaches =
        "torch writes one item per chunk and records where it is. Two chunks never share an item; "
        "even tied tensors are written twice. If two records point to the same bytes, one record "
        "was overwritten, by a script that edited .metadata or by a merge, and a load gives one "
        "chunk the elements of the other without an error. The right bytes are often still in the "
        "file of the rank that wrote them, with no record pointing to them. If exactly one such "
        "range holds an item of the right shape and dtype, the record can be corrected. Two file "
        "names that link to one file look the same, and so do two files of which one was copied "
        "over the other.",
    .lesson = {.drawing = R"(
  recorded                                 in the files
  fc.weight at (0, 0)  ─┐
  fc.weight at (4, 0)  ─┴─ __0_0.distcp    │ rows 0 to 3 │
  -                        __1_0.distcp    │ rows 4 to 7 │  no record
)",
               .remedy =
                   "If exactly one unused item has the right shape and dtype, `shardwright repair` "
                   "points the record to it. Otherwise look for an earlier copy of .metadata."},
    .words = {.text = "loads one chunk's values into another"},
    .coverage = {.text = "chunks share bytes", .place = 7},
    .cause_of = ExplainedSymptoms::kTilesAndItems,
    .run = find_shared_storage,
};

}  // namespace shw
