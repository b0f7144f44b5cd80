// V-11: data files of ranks 0 to W-1, with some numbers missing.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// "shard-00002-model-00001-of-00003.safetensors": its three numbers; nothing of another name.
struct ShardName {
  std::uint32_t shard = 0, file = 0, files = 0;
};
std::optional<ShardName> shard_name(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  ShardName out;
  auto take = [&](std::string_view before, std::uint32_t& number) {
    if (!name.starts_with(before)) return false;
    name.remove_prefix(before.size());
    auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code != std::errc{}) return false;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    return true;
  };
  bool whole = take("shard-", out.shard) && take("-model-", out.file) && take("-of-", out.files) &&
               name == ".safetensors";
  return whole ? std::optional(out) : std::nullopt;
}

// Of torch's sharded safetensors no index says which files there were: their numbers do.
void look_at_shards(const Checkpoint& checkpoint, std::vector<Finding>& findings) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> there;
  std::uint32_t shards = 0, files = 0;
  for (const FileRow& file : checkpoint.files()) {
    auto name = shard_name(file.path);
    if (!name || (files != 0 && name->files != files)) continue;
    files = name->files;
    shards = std::max(shards, name->shard);
    there.insert({name->shard, name->file});
  }
  // Numbers are text from names: a grid that is mostly empty is none.
  auto all = std::uint64_t{shards} * files;
  if (there.size() < 2 || all == there.size() || all > 2 * there.size()) return;
  Finding finding;
  finding.rule = "rank-hole";
  finding.severity = Severity::kInfo;
  for (std::uint32_t shard = 1; shard <= shards; ++shard) {
    for (std::uint32_t file = 1; file <= files; ++file) {
      if (there.contains({shard, file})) continue;
      char name[64];
      std::snprintf(name, sizeof name, "shard-%05u-model-%05u-of-%05u.safetensors", shard, file,
                    files);
      finding.subjects.emplace_back(name);
    }
  }
  finding.cause = "There are " + plural(there.size(), "file") + " of " + plural(shards, "rank") +
                  ", and " + some_of(finding.subjects) +
                  (finding.subjects.size() == 1 ? " is" : " are") +
                  " not among them: that rank had nothing for it, or it was left behind.";
  finding.evidence = {{"files_there", count_of(there.size())},
                      {"missing", capped(finding.subjects)},
                      {"missing_count", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

void find_rank_holes(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (checkpoint.format() == Format::kHfSharded) look_at_shards(checkpoint, findings);
  if (checkpoint.format() != Format::kDcp) return;
  std::set<std::int64_t> ranks;
  for (const FileRow& file : checkpoint.files()) {
    if (file.rank && file.path.ends_with(".distcp")) ranks.insert(std::int64_t{*file.rank});
  }
  if (ranks.size() < 2) return;
  // A name is text from a file: nothing is counted up to the number that it holds.
  Extents missing;
  std::int64_t next = 0, count = 0;
  for (std::int64_t rank : ranks) {
    count += rank - next;
    for (; next < rank && missing.size() < kMaxEvidence; ++next) missing.push_back(next);
    next = rank + 1;
  }
  if (missing.empty()) return;
  Finding finding;
  finding.rule = "rank-hole";
  finding.severity = Severity::kInfo;
  for (std::int64_t rank : missing)
    finding.subjects.push_back("__" + std::to_string(rank) + "_0.distcp");
  finding.cause = "There are data files of " + plural(ranks.size(), "rank") + " up to rank " +
                  std::to_string(*ranks.rbegin()) + ", and none of " +
                  plural(static_cast<std::uint64_t>(count), "rank") + " between them (" +
                  some_of(finding.subjects) +
                  "): nothing in the metadata points there, so those ranks had nothing to write "
                  "or their part was never recorded.";
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
        "torch's writer leaves one file a rank, an empty one where the rank had nothing to write, "
        "so a missing number is worth a look: files spread over several nodes without a shared "
        "disk, or a copy that left some behind. Megatron writes no file for such a rank, and there "
        "a hole is normal. What the metadata points to is looked at by missing-file; here nothing "
        "points to the missing ranks, and whether anything is lost is for coverage-gap to say.",
    .lesson = {.drawing = R"(
  rank        0   1   2   3   4   5
  data file   x   x   -   x   x   x       of rank 2 there is none
)",
               .remedy = "Nothing points to the missing file. Look for it on the node of that rank "
                         "if rows are missing."},
    .hint = {.what = "whether ranks without a file had anything to save",
             .needs = "--spec or --against",
             .open_at_data = true},
    .run = find_rank_holes,
};

}  // namespace shw
