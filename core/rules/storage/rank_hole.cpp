// Data files of ranks 0 to W-1 of which some are missing.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// All numbers in a file name, in order.
std::vector<std::uint32_t> numbers_in(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  std::vector<std::uint32_t> numbers;
  while (!name.empty()) {
    if (const auto number = consume_number(name))
      numbers.push_back(*number);
    else
      name.remove_prefix(1);
  }
  return numbers;
}

// True for 1, 3, 5: if ranks are replicas, only one rank of each group writes.
bool has_constant_step(const std::set<std::uint32_t>& numbers) {
  if (numbers.size() < 2) return false;
  const std::uint32_t step = *std::next(numbers.begin()) - *numbers.begin();
  return step > 1 && std::adjacent_find(numbers.begin(), numbers.end(), [&](auto a, auto b) {
                       return b - a != step;
                     }) == numbers.end();
}

// Number of missing files with a number that no existing file has at that place of its name:
// everything of that rank or part of the model is lost.
std::size_t count_without_siblings(std::span<const std::string_view> there,
                                   std::span<const std::string> missing) {
  std::map<std::size_t, std::set<std::uint32_t>> present;  // by place in the name
  for (std::string_view name : there) {
    const auto numbers = numbers_in(name);
    for (std::size_t i = 0; i < numbers.size(); ++i) present[i].insert(numbers[i]);
  }
  std::erase_if(present, [](const auto& place) { return has_constant_step(place.second); });
  return static_cast<std::size_t>(
      std::count_if(missing.begin(), missing.end(), [&](const std::string& name) {
        const auto numbers = numbers_in(name);
        return std::any_of(present.begin(), present.end(), [&](const auto& place) {
          return place.first < numbers.size() && !place.second.contains(numbers[place.first]);
        });
      }));
}

// Without an index, the numbers in file names tell which files are missing.
void check_file_numbers(const Checkpoint& checkpoint, std::vector<Finding>& findings) {
  std::vector<std::string_view> paths;
  for (const FileRow& file : checkpoint.files()) paths.push_back(file.path);
  auto [there, ranks, missing] = checkpoint.format().traits.unlisted_files(paths);
  if (missing.empty()) return;
  Finding finding{.rule = "rank-hole"};
  const std::size_t alone = count_without_siblings(paths, missing);
  finding.severity = alone != 0 ? Severity::kWarning : Severity::kInfo;
  finding.subjects = std::move(missing);
  finding.cause = "There are " + plural(there, "file") + " of " + plural(ranks, "rank") + ", and " +
                  short_list_text(finding.subjects) +
                  (finding.subjects.size() == 1 ? " is" : " are") + " not among them.";
  finding.cause += finding.severity == Severity::kInfo
                       ? " That rank had nothing to save, or its file was not copied."
                       : fmt::format(
                             " For {} of the missing files no other file has the same number at "
                             "that position: all files of a rank or of a part of the model are "
                             "missing, possibly with whole tensors.",
                             alone);
  finding.evidence = {{"files_there", count_of(there)},
                      {"missing", capped(finding.subjects)},
                      {"missing_count", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

void find_rank_holes(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  const FormatTraits& traits = checkpoint.format().traits;
  if (traits.unlisted_files != nullptr) check_file_numbers(checkpoint, findings);
  if (traits.file_of_rank == nullptr) return;
  std::set<std::int64_t> ranks;
  for (const FileRow& file : checkpoint.files()) {
    if (file.rank) ranks.insert(std::int64_t{*file.rank});
  }
  if (ranks.size() < 2) return;
  // Numbers in names are untrusted, so nothing counts up to them.
  Extents missing;
  std::int64_t next = 0, count = 0;
  for (std::int64_t rank : ranks) {
    count += rank - next;
    for (; next < rank && missing.size() < kMaxEvidence; ++next) missing.push_back(next);
    next = rank + 1;
  }
  if (missing.empty()) return;
  Finding finding{.rule = "rank-hole", .severity = Severity::kInfo};
  for (std::int64_t rank : missing)
    finding.subjects.push_back(traits.file_of_rank(static_cast<std::uint32_t>(rank)));
  finding.cause = fmt::format(
      "There are data files of {} up to rank {}, and none of {} between them ({}): the metadata "
      "does not reference these files, so those ranks had nothing to write or their part was never "
      "recorded.",
      plural(ranks.size(), "rank"), *ranks.rbegin(),
      plural(static_cast<std::uint64_t>(count), "rank"), short_list_text(finding.subjects));
  finding.evidence = {{"ranks_there", count_of(ranks.size())},
                      {"ranks_missing", std::move(missing)},
                      {"missing_count", count},
                      {"highest_rank", *ranks.rbegin()}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kRankHole = {
    .id = "rank-hole",
    .depth = Depth::kMetadata,
    .title = "Some ranks have no data file",
    .teaches =
        "torch writes one file per rank, an empty one if the rank had nothing to save, so a "
        "missing number can mean that files are spread over several nodes without a shared disk, "
        "or that a copy was incomplete. Megatron writes no file for a rank without data, so there "
        "a gap is normal. The metadata does not reference the missing files (missing-file reports "
        "those that it does); coverage-gap reports whether any rows are missing.",
    .lesson = {.drawing = R"(
  rank        0   1   2   3   4   5
  data file   x   x   -   x   x   x       of rank 2 there is none
)",
               .remedy = "The metadata does not reference the missing file. If rows are missing "
                         "(coverage-gap), look for it on the node of that rank."},
    .hint = {.what = "whether ranks without a file had anything to save",
             .needs = "--spec or --against",
             .remains_open_at_data = true},
    .run = find_rank_holes,
};

}  // namespace shw
