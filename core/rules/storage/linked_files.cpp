#include "core/rules/storage/linked_files.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/io/same_file.h"
#include "core/rules/rules.h"
#include "core/rules/storage/tile_start.h"

namespace shw {
namespace {

constexpr int kMaxLookedAt = 1024;  // tiles whose values are read

bool is_recorded(const FileRow& file) {
  return file.safe && file.referenced && file.kind == EntryKind::kFile && file.size > 0;
}

bool is_distinctive(const Facts& facts, const std::vector<SharedRange>& ranges) {
  if (facts.depth < Depth::kHeaders) return false;
  ItemCursor reader(facts.checkpoint, /*decoded_bytes=*/0);
  int looked_at = 0;
  for (const SharedRange& range : each_of(ranges, facts)) {
    for (const Claim& claim : range.claims) {
      if (!claim.is_chunk()) continue;
      if (looked_at++ == kMaxLookedAt) return false;
      // Tools that deduplicate equal files also link files of zeros or ones; only files with
      // different numbers prove an error.
      if (distinct_values_at_start(facts.checkpoint, claim.chunk, 2, reader) == 2) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<FileId> first_file_per_inode(const Checkpoint& checkpoint) {
  auto files = checkpoint.files();
  const std::string folder = checkpoint.directory()->name() + "/";
  // A file with a unique size cannot equal any other file.
  std::unordered_map<std::uint64_t, int> of_size;
  for (const FileRow& file : files) of_size[file.size] += is_recorded(file) ? 1 : 0;
  std::vector<FileId> real(files.size());
  std::map<std::pair<std::uint64_t, std::uint64_t>, FileId> by_inode;
  bool any = false;
  for (std::size_t i = 0; i < files.size(); ++i) {
    real[i] = FileId{static_cast<std::uint32_t>(i)};
    if (!is_recorded(files[i]) || of_size[files[i].size] < 2) continue;
    auto inode = inode_of(folder + files[i].path);
    if (!inode) continue;
    auto [first, is_new] = by_inode.try_emplace(*inode, real[i]);
    real[i] = first->second;
    any = any || !is_new;
  }
  return any ? real : std::vector<FileId>{};
}

bool spans_files(const Checkpoint& checkpoint, const SharedRange& range) {
  return std::any_of(range.claims.begin(), range.claims.end(), [&](const Claim& claim) {
    return place_of(checkpoint, claim).file != place_of(checkpoint, range.claims.front()).file;
  });
}

void report_linked_files(const Facts& facts, const std::vector<SharedRange>& ranges,
                         std::vector<Finding>& findings) {
  if (ranges.empty()) return;
  const Checkpoint& c = facts.checkpoint;
  std::set<std::string> files, tensors;
  for (const SharedRange& range : ranges) {
    for (const Claim& claim : range.claims) {
      files.insert(c.file(place_of(c, claim).file).path);
      tensors.emplace(fqn_of(c, claim));
    }
  }
  bool telling = is_distinctive(facts, ranges);
  Finding finding{.rule = std::string(kSharedStorage.id),
                  .severity = telling ? Severity::kWarning : Severity::kInfo};
  finding.subjects.assign(files.begin(), files.end());
  finding.cause =
      plural(files.size(), "data file") + " that the metadata lists as different files (" +
      short_list_text(finding.subjects) +
      ") are links to the same file on disk: one rank's data is loaded for several ranks.";
  if (telling)
    finding.cause +=
        " Different chunks do not hold equal numbers by chance: one of the files was lost, or a "
        "tool linked copies of one tensor.";
  else if (facts.depth < Depth::kHeaders)
    finding.cause +=
        " The files were not opened to see whether this can be intended (--depth headers).";
  else
    finding.cause +=
        " All values read are equal, which a tool that deduplicates equal files also produces.";
  finding.evidence = {
      {"tensors_in_them", capped(std::vector<std::string>(tensors.begin(), tensors.end()))},
      {"count", count_of(ranges.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace shw
