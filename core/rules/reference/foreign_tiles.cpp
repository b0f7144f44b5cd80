// A rank's file from another save, and chunks of two tensors under each other's names: complete and
// of the right size, so only a reference of the same step shows them.
#include "core/rules/reference/foreign_tiles.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/reference/match.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

ChunkId chunk_at(const Checkpoint& c, const MovedTiles& of, std::size_t number) {
  return c.chunks(of.tensor)[static_cast<std::uint32_t>(number)];
}

std::string tile_text(const Checkpoint& c, ChunkId chunk) {
  return std::string(c.fqn(c.tensor_of(chunk))) + " at " + to_text(box_of(c, chunk));
}

// Properties that interchangeable chunks share.
using Look = std::tuple<Extents, Dtype, std::string>;
Look chunk_summary(const Checkpoint& c, ChunkId chunk, const std::string& start) {
  return {copy_of(c.sizes(chunk)), c.dtype(c.tensor_of(chunk)), start};
}

// Counts of one rank's chunks compared with the reference.
struct WriterCounts {
  std::int64_t right = 0;       // in tensors with other differing chunks
  std::int64_t strange = 0;     // in any tensor
  std::int64_t equal = 0;       // in tensors equal to the reference
  std::set<std::string> files;  // of the chunks counted in the first two
};
using ByWriter = std::map<std::uint32_t, WriterCounts>;

// True for a chunk found at another place of its own tensor, which is not evidence against its
// file.
bool is_found_elsewhere_in_tensor(const Checkpoint& c, const MovedTiles& of,
                                  const UnmatchedTile& tile) {
  const Extents offsets = copy_of(c.offsets(chunk_at(c, of, tile.chunk)));
  return std::any_of(of.places.moves.begin(), of.places.moves.end(),
                     [&](const TileMove& move) { return move.recorded.offsets == offsets; });
}

bool has_matching_and_foreign_tiles(const MovedTiles& one) {
  return !one.places.right.empty() && !one.places.strange.empty();
}

// nullopt if a chunk has no known writer.
std::optional<ByWriter> count_by_writer(const Facts& facts, const std::vector<MovedTiles>& looked,
                                        const std::set<TensorId>& right) {
  const Checkpoint& c = facts.checkpoint;
  ByWriter out;
  bool all_known = true;
  auto add = [&](ChunkId chunk, std::int64_t WriterCounts::*count) {
    auto writer = c.writer(chunk);
    all_known = all_known && writer.has_value();
    if (!writer) return;
    WriterCounts& one = out[*writer];
    ++(one.*count);
    auto item = c.item(chunk);
    if (count != &WriterCounts::equal && item) one.files.insert(c.file(item->file).path);
  };
  for (const MovedTiles& one : looked) {
    for (std::size_t number : one.places.right) add(chunk_at(c, one, number), &WriterCounts::right);
    for (const UnmatchedTile& tile : one.places.strange) {
      if (!is_found_elsewhere_in_tensor(c, one, tile))
        add(chunk_at(c, one, tile.chunk), &WriterCounts::strange);
    }
  }
  for (TensorId tensor : right) {
    for (ChunkId chunk : c.chunks(tensor)) {
      if (volume(c.sizes(chunk)) != 0) add(chunk, &WriterCounts::equal);
    }
  }
  return all_known ? std::optional(std::move(out)) : std::nullopt;
}

// True if some ranks have only differing chunks and all others none: training changes all ranks,
// and frozen parts are on all ranks.
bool differs_on_whole_ranks(const ByWriter& writers) {
  return std::all_of(writers.begin(), writers.end(), [](const auto& entry) {
    const WriterCounts& one = entry.second;
    return one.strange == 0 || (one.right == 0 && one.strange > one.equal);
  });
}

}  // namespace

std::set<std::string_view> report_swapped_between_tensors(const Facts& facts,
                                                          const std::vector<MovedTiles>& looked,
                                                          std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  PlacesByContent<Look, ChunkId> wanted;
  for (const MovedTiles& one : looked) {
    for (const UnmatchedTile& tile : one.places.strange) {
      ChunkId chunk = chunk_at(c, one, tile.chunk);
      if (!tile.wanted.empty()) wanted.add(chunk_summary(c, chunk, tile.wanted), chunk);
    }
  }
  std::set<std::string_view> told;
  std::vector<std::string> moves;
  for (const MovedTiles& one : looked) {
    if (!has_matching_and_foreign_tiles(one))
      continue;  // other rules report whole tensors under another name
    for (const UnmatchedTile& tile : one.places.strange) {
      ChunkId chunk = chunk_at(c, one, tile.chunk);
      const auto home = wanted.only(chunk_summary(c, chunk, tile.holds));
      if (!home || c.tensor_of(*home) == one.tensor) continue;
      moves.push_back(tile_text(c, chunk) + " begins as the reference does in " +
                      tile_text(c, *home));
      told.insert(c.fqn(one.tensor));
    }
  }
  if (moves.empty()) return told;
  Finding finding{.rule = std::string(kTilesExchanged.id)};
  for (std::string_view fqn : told) finding.subjects.emplace_back(fqn);
  finding.cause = plural(moves.size(), "chunk") + (moves.size() == 1 ? " lies" : " lie") +
                  " in a different tensor from the reference (" + moves.front() +
                  "): items or their records were mixed up. It loads without an error.";
  finding.evidence = {{"family", std::string("between tensors")},
                      {"tiles_elsewhere", count_of(moves.size())},
                      {"moves", capped(moves)},
                      {"decided", false}};
  findings.push_back(std::move(finding));
  return told;
}

std::set<std::string_view> report_foreign_chunks(const Facts& facts,
                                                 const std::vector<MovedTiles>& looked,
                                                 const std::set<TensorId>& right,
                                                 std::vector<Finding>& findings) {
  // A single tensor may contain untrained rows, as embeddings do.
  if (std::count_if(looked.begin(), looked.end(), has_matching_and_foreign_tiles) < 2) return {};
  auto writers = count_by_writer(facts, looked, right);
  if (!writers || !differs_on_whole_ranks(*writers)) return {};
  std::set<std::string> files;
  std::int64_t strange = 0, same = 0;
  for (const auto& [writer, one] : *writers) {
    if (one.strange != 0) files.insert(one.files.begin(), one.files.end());
    strange += one.strange;
    same += one.right;
  }
  // At another training step most chunks differ, and equal ones may belong to unused experts.
  if (strange > same) return {};
  std::set<std::string_view> told;
  std::vector<std::string> names;
  for (const MovedTiles& one : looked) {
    if (told.insert(facts.checkpoint.fqn(one.tensor)).second)
      names.emplace_back(facts.checkpoint.fqn(one.tensor));
  }
  Finding finding{.rule = std::string(kForeignFile.id), .severity = Severity::kWarning};
  finding.subjects.assign(files.begin(), files.end());
  const bool is_one = files.size() == 1;
  finding.cause = short_list_text(finding.subjects) + (is_one ? " holds" : " hold") +
                  " values that differ from the reference everywhere (" +
                  plural(static_cast<std::uint64_t>(strange), "chunk") + " of " +
                  plural(names.size(), "tensor") +
                  "), while the other ranks' chunks of these tensors equal the reference: the " +
                  (is_one ? "file is" : "files are") +
                  " from another step or run, unless only these parts were trained further.";
  finding.evidence = {{"tiles_that_differ", strange},
                      {"tiles_of_reference", same},
                      {"tensors", capped(names)},
                      {"count", count_of(names.size())}};
  findings.push_back(std::move(finding));
  return told;
}

const Rule kForeignFile = {
    .id = "foreign-file",
    .depth = Depth::kHeaders,
    .title = "A rank's file comes from another save",
    .teaches =
        "A data file that was copied from another step, or from another run of the same model, has "
        "the right size, complete items and good checksums: the checkpoint itself does not show "
        "that its rows do not match those of the other ranks, and it loads. Compared with a copy "
        "of the same step (--against) all chunks of one rank differ, while the other ranks' chunks "
        "of the same tensors are equal. Training would change the rows of all ranks.",
    .lesson = {.drawing = R"(
  one matrix by rank       0        1        2        3
  beside the reference   equal    other    equal    equal
  the next one           equal    other    equal    equal     rank 1's file
)",
               .remedy = "The right rows are not in this checkpoint: copy this rank's file of this "
                         "step again from the original."},
    .outcome = RunOutcome::kLoadsWrongValues,
};

}  // namespace shw
