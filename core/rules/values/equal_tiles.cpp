#include "core/rules/values/equal_tiles.h"

#include <fmt/core.h>

#include <map>
#include <set>
#include <utility>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/reference/alike_contents.h"
#include "core/facts/values/value_pairs.h"
#include "core/rules/rules.h"
#include "core/rules/storage/equal_files.h"

namespace shw {
namespace {

// True if two chunks agree in size and checksum, or one has no checksum.
bool may_have_equal_tiles(const Facts& facts, TensorId tensor) {
  const Checkpoint& c = facts.checkpoint;
  std::set<std::pair<Extents, std::uint32_t>> seen;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)).value_or(0) == 0) continue;
    const Result<ItemHeader>& header = facts.headers[index_of(chunk)];
    if (!header || !header->payload_crc) return true;
    if (!seen.emplace(copy_of(c.sizes(chunk)), *header->payload_crc).second) return true;
  }
  return false;
}

std::vector<TensorId> tensors_to_compare(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<TensorId> tensors;
  for (TensorId tensor : each_tensor(facts)) {
    if (c.chunks(tensor).size() > 1 && !c.shape(tensor).empty() &&
        must_have_distinct_tiles(c, tensor) && has_comparable_values(facts, tensor) &&
        may_have_equal_tiles(facts, tensor))
      tensors.push_back(tensor);
  }
  return tensors;
}

// Files that a shared-storage finding above info names.
std::set<std::string_view> equal_files_in(const std::vector<Finding>& findings) {
  std::set<std::string_view> files;
  for (const Finding& finding : findings) {
    if (finding.rule != kSharedStorage.id || finding.severity == Severity::kInfo) continue;
    files.insert(finding.subjects.begin(), finding.subjects.end());
  }
  return files;
}

struct TilePair {
  TensorId tensor{};
  ChunkId first{}, second{};
  bool is_exception = true;  // copies are fewer than half of the tensor's tiles
};
using Writers = std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>;

std::map<Writers, std::vector<TilePair>> pairs_by_writers(const Facts& facts,
                                                          const std::vector<TensorId>& tensors,
                                                          const EqualPartsOfEach& equal,
                                                          const std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const std::set<std::string_view> told = equal_files_in(findings);
  auto is_told = [&](ChunkId chunk) {
    auto item = c.item(chunk);
    return item && item->file != FileId::kNone && told.contains(c.file(item->file).path);
  };
  std::map<Writers, std::vector<TilePair>> out;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (equal[i].empty()) continue;
    std::vector<ChunkId> chunks;
    for (ChunkId chunk : c.chunks(tensors[i])) chunks.push_back(chunk);
    for (const EqualParts& one : equal[i]) {
      const ChunkId first = chunks[static_cast<std::size_t>(one.first)],
                    second = chunks[static_cast<std::size_t>(one.second)];
      if (is_told(first) && is_told(second)) continue;
      out[{c.writer(first), c.writer(second)}].push_back(
          {tensors[i], first, second, equal[i].size() * 2 < chunks.size()});
    }
  }
  return out;
}

// "model.w: the tiles at [16, 0] and [32, 0]"
std::string pair_text(const Checkpoint& c, const TilePair& pair) {
  return fmt::format("{}: the chunks at {} and {}", c.fqn(pair.tensor),
                     to_text(c.offsets(pair.first)), to_text(c.offsets(pair.second)));
}

struct TilesFound {
  Finding finding;
  std::vector<std::string> pairs;
  std::set<TensorId> seen;

  void add(const Checkpoint& c, const TilePair& pair) {
    pairs.push_back(pair_text(c, pair));
    if (seen.insert(pair.tensor).second) finding.subjects.emplace_back(c.fqn(pair.tensor));
  }
  void report(Severity severity, const char* why, std::vector<Finding>& findings) {
    if (pairs.empty()) return;
    finding.rule = kDuplicateContent.id;
    finding.severity = severity;
    finding.cause = fmt::format(
        "Chunks of one tensor hold the same bytes, which training does not produce ({}): {}",
        short_list_text(pairs), why);
    finding.evidence = {{"tiles", capped(pairs)},
                        {"pair_count", count_of(pairs.size())},
                        {"tensor_count", count_of(finding.subjects.size())}};
    findings.push_back(std::move(finding));
  }
};

}  // namespace

Status report_equal_tiles(const Facts& facts, std::vector<Finding>& findings) {
  const std::vector<TensorId> tensors = tensors_to_compare(facts);
  SHW_TRY(const EqualPartsOfEach equal, find_equal_tiles(facts, tensors));
  TilesFound sure, unsure;
  for (const auto& [writers, pairs] : pairs_by_writers(facts, tensors, equal, findings)) {
    // True if both ranks are known and different.
    const bool are_two = writers.first && writers.second && writers.first != writers.second;
    std::set<TensorId> exceptions;
    for (const TilePair& pair : pairs) {
      if (pair.is_exception) exceptions.insert(pair.tensor);
    }
    for (const TilePair& pair : pairs)
      (are_two && exceptions.size() > 1 && pair.is_exception ? sure : unsure)
          .add(facts.checkpoint, pair);
  }
  sure.report(Severity::kWarning,
              "one rank's chunk was saved at another rank's position, and the right values for it "
              "are not in this tensor.",
              findings);
  unsure.report(Severity::kInfo,
                "a table that repeats, copies that were declared as shards, or one rank's chunk at "
                "another rank's position.",
                findings);
  return {};
}

}  // namespace shw
