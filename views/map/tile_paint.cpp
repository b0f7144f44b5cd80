#include "views/map/tile_paint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/natural_order.h"
#include "core/model/evidence.h"
#include "core/model/reachable.h"
#include "core/rules/unreadable.h"
#include "views/text.h"

namespace shw {
namespace {

using verbs::TileNumbers;

// Further files share one group; a legend shows far fewer.
constexpr std::size_t kMaxFiles = 60'000;
constexpr std::size_t kMaxFindings = 26;  // A to Z
// Limit of box-tile comparisons: 0.2 s.
constexpr std::size_t kMaxPairs = 64'000'000;
constexpr std::uint16_t kRampSteps = 16;

bool is_chunk(const Checkpoint& checkpoint, ChunkId chunk) {
  return index_of(chunk) < checkpoint.chunk_count();
}

// Groups of all tiles of both pictures, by the chunk that holds the bytes.
template <class GroupOf>
void paint_tiles(const PaintedTiles& picture, TilePaint& paint, GroupOf group_of) {
  auto put = [&](const TileSet& tiles, std::vector<std::uint16_t>& into) {
    into.resize(tiles.size());
    for (std::uint32_t tile = 0; tile < tiles.size(); ++tile)
      into[tile] = group_of(tiles.chunk(tile));
  };
  put(*picture.saved, paint.saved);
  if (picture.after != nullptr) put(*picture.after, paint.after);
  for (std::uint16_t group : paint.saved) ++paint.groups[group].tiles;
  paint.of = picture.saved->size();
}

// Colours by file index: neighbours differ in hue or lightness.
Rgba file_colour(std::size_t index, std::size_t count) {
  if (count > 12) {
    auto columns = static_cast<std::uint32_t>((count + 1) / 2);
    return writer_colour(
        static_cast<std::uint32_t>(index % 2) * columns + static_cast<std::uint32_t>(index / 2),
        {2, columns}, TilePalette{});
  }
  float hue = 245.0f + 230.0f * static_cast<float>(index) / static_cast<float>(count);
  return from_oklch(index % 2 == 0 ? 0.55f : 0.70f, 0.11f, hue);
}

// Lighter means more; hue from violet to yellow. Readable without colour vision.
Rgba step_colour(std::size_t step) {
  float part = static_cast<float>(step) / static_cast<float>(kRampSteps - 1);
  return from_oklch(0.34f + 0.56f * part, 0.12f, 300.0f - 190.0f * part);
}

// The tiles that a finding is about.
class TilesOfFinding {
 public:
  TilesOfFinding(const Checkpoint& checkpoint, const PaintedTiles& picture,
                 const FindingNames& names, const Finding& finding, std::uint32_t index)
      : checkpoint_(checkpoint),
        picture_(picture),
        names_(names),
        finding_(finding),
        index_(index) {}

  // One flag per chunk of the tensor; empty: none.
  std::vector<bool> chunks() {
    auto chunks = checkpoint_.chunks(picture_.tensor);
    std::vector<bool> named(chunks.size(), false);
    const bool tensor = names_.names(picture_.tensor, index_);
    bool placed = tensor && (mark_tiles_by_diagnoses(named) || by_box(named));
    if (tensor && !placed) named.assign(chunks.size(), true);
    by_file(named);
    return named;
  }

 private:
  void mark_chunk(std::vector<bool>& named, ChunkId chunk) const {
    auto chunks = checkpoint_.chunks(picture_.tensor);
    if (index_of(chunk) >= chunks.first && index_of(chunk) < chunks.last)
      named[index_of(chunk) - chunks.first] = true;
  }

  bool mark_tiles_by_diagnoses(std::vector<bool>& named) const {
    auto chunks = checkpoint_.chunks(picture_.tensor);
    bool placed = false;
    for (const Diagnosis& diagnosis : finding_.diagnoses) {
      if (tensor_of(diagnosis) != picture_.tensor) continue;
      if (const auto* repointed = std::get_if<WrongItemRecords>(&diagnosis)) {
        for (const CorrectItemPlace& place : repointed->places) mark_chunk(named, place.chunk);
        placed = true;
      }
      const auto* relabelled = std::get_if<WrongBoxes>(&diagnosis);
      if (relabelled == nullptr || relabelled->boxes.size() != chunks.size()) continue;
      placed = true;
      for (std::uint32_t i = 0; i < chunks.size(); ++i) {
        const Box& box = relabelled->boxes[i];
        named[i] = !same(checkpoint_.offsets(chunks[i]), box.offsets) ||
                   !same(checkpoint_.sizes(chunks[i]), box.sizes);
      }
    }
    return placed;
  }

  // Boxes of a finding about several tensors count where it names the tensor of each.
  bool by_box(std::vector<bool>& named) const {
    auto chunks = checkpoint_.chunks(picture_.tensor);
    const std::string_view fqn = checkpoint_.fqn(picture_.tensor);
    std::size_t most = kMaxPairs / std::max<std::size_t>(chunks.size(), 1);
    bool placed = false;
    for (const auto& [label, value] : finding_.evidence) {
      const auto* boxes = std::get_if<std::vector<Box>>(&value);
      if (boxes == nullptr || boxes->empty()) continue;
      const auto* tensors = tensor_per_evidence_box(finding_, boxes->size());
      if (tensors == nullptr && finding_.subjects.size() > 1) continue;
      for (std::size_t b = 0; b < boxes->size() && most > 0; ++b) {
        if (tensors != nullptr && (*tensors)[b] != fqn) continue;
        const Box& box = (*boxes)[b];
        --most;
        for (std::uint32_t i = 0; i < chunks.size(); ++i) {
          ExtentsView offsets = checkpoint_.offsets(chunks[i]),
                      sizes = checkpoint_.sizes(chunks[i]);
          if (offsets.size() != box.offsets.size() || sizes.size() != box.sizes.size()) continue;
          if (intersect(box, Box{copy_of(offsets), copy_of(sizes)})) named[i] = placed = true;
        }
      }
    }
    return placed;
  }

  // Of a file that lacks bytes only the chunks that cannot be read.
  void by_file(std::vector<bool>& named) const {
    auto chunks = checkpoint_.chunks(picture_.tensor);
    const bool lacks_bytes = has_unreadable_counts(finding_);
    for (std::uint32_t i = 0; i < chunks.size(); ++i) {
      auto item = checkpoint_.item(chunks[i]);
      if (!item || item->file == FileId::kNone || named[i]) continue;
      const auto of_file = names_.of(item->file);
      if (!std::binary_search(of_file.begin(), of_file.end(), index_)) continue;
      if (!lacks_bytes || !is_reachable(checkpoint_, chunks[i])) named[i] = true;
    }
  }

  const Checkpoint& checkpoint_;
  const PaintedTiles& picture_;
  const FindingNames& names_;
  const Finding& finding_;
  const std::uint32_t index_;
};

// Classes of a tile's statistic: none, a special value, or a number on the scale.
enum class ValueClass : std::uint8_t { kNothing, kZero, kInfinite, kOnlyNan, kNumber };
struct ClassifiedValue {
  ValueClass value_class = ValueClass::kNothing;
  double number = 0;
};

ClassifiedValue classify_value(const TileNumbers& tile, ColourBy by) {
  auto odd = static_cast<double>(tile.nan + tile.infinite);
  if (tile.elements == 0) return {ValueClass::kZero, 0};
  if (by == ColourBy::kNonFinite) return {odd > 0 ? ValueClass::kNumber : ValueClass::kZero, odd};
  if (by == ColourBy::kZeros)
    return {ValueClass::kNumber,
            static_cast<double>(tile.zero) / static_cast<double>(tile.elements)};
  if (tile.greatest < 0) return {ValueClass::kOnlyNan, 0};
  if (std::isinf(tile.greatest)) return {ValueClass::kInfinite, 0};
  return {tile.greatest > 0 ? ValueClass::kNumber : ValueClass::kZero, tile.greatest};
}

struct Scale {
  double from = 0, to = 0;
  bool logarithmic = false;

  std::uint16_t step(double number) const {
    if (!(to > from)) return kRampSteps - 1;
    double part =
        logarithmic ? std::log(number / from) / std::log(to / from) : (number - from) / (to - from);
    return static_cast<std::uint16_t>(std::clamp(part * kRampSteps, 0.0, kRampSteps - 1.0));
  }
};

Scale scale_of(const verbs::TileValues& values, ColourBy by) {
  if (by == ColourBy::kZeros) return {0, 1, false};
  Scale scale{1e308, 0, true};
  for (const TileNumbers& tile : values.tiles) {
    ClassifiedValue said = classify_value(tile, by);
    if (tile.state != TileNumbers::State::kLooked || said.value_class != ValueClass::kNumber)
      continue;
    scale.from = std::min(scale.from, said.number);
    scale.to = std::max(scale.to, said.number);
  }
  return scale;
}

std::string scale_text(double number, ColourBy by) {
  if (by == ColourBy::kZeros) return fmt::format("{:.0f} %", number * 100);
  if (by == ColourBy::kNonFinite) return human_count(static_cast<std::uint64_t>(number));
  return fmt::format("{:.3g}", number);
}

const char* statistic_title(ColourBy by) {
  if (by == ColourBy::kNonFinite) return "NaN and infinite elements per tile";
  if (by == ColourBy::kZeros) return "share of zeros per tile";
  return "largest |x| per tile";
}

}  // namespace

std::string_view name(ColourBy by) {
  constexpr std::string_view kNames[kColourings] = {
      "writer", "file", "finding", "NaN and infinite", "largest magnitude", "share of zeros"};
  return kNames[static_cast<std::size_t>(by)];
}

Rgba colour_of(const PaintGroup& group, const TilePalette& palette) {
  switch (group.token) {
    case PaintGroup::Token::kOwn:
      return group.own;
    case PaintGroup::Token::kQuiet:
      return palette.nobody;
    case PaintGroup::Token::kNotLooked:
      return palette.raised;
    case PaintGroup::Token::kUnread:
      return palette.bad;
    case PaintGroup::Token::kSpecial:
      return palette.frame;
  }
  return palette.nobody;
}

std::shared_ptr<const TilePaint> paint_by_file(const Checkpoint& checkpoint,
                                               const PaintedTiles& picture) {
  auto paint = std::make_shared<TilePaint>();
  paint->by = ColourBy::kFile;
  std::vector<std::uint32_t> group_of(checkpoint.files().size(), 0);
  std::vector<std::uint32_t> files;
  auto note = [&](const TileSet& tiles) {
    for (std::uint32_t tile = 0; tile < tiles.size(); ++tile) {
      if (!is_chunk(checkpoint, tiles.chunk(tile))) continue;
      auto item = checkpoint.item(tiles.chunk(tile));
      if (!item || item->file == FileId::kNone || group_of[index_of(item->file)] != 0) continue;
      group_of[index_of(item->file)] = 1;
      files.push_back(static_cast<std::uint32_t>(index_of(item->file)));
    }
  };
  note(*picture.saved);
  if (picture.after != nullptr) note(*picture.after);
  std::ranges::sort(files, [&](std::uint32_t a, std::uint32_t b) {
    return natural_less(checkpoint.files()[a].path, checkpoint.files()[b].path);
  });
  paint->title = plural(files.size(), "file");
  paint->groups.push_back({PaintGroup::Token::kQuiet, 0, "in no file", "", 0, 1});
  for (std::size_t i = 0; i < files.size(); ++i) {
    bool fits = i < kMaxFiles;
    group_of[files[i]] = static_cast<std::uint32_t>(std::min(i, kMaxFiles) + 1);
    if (i > kMaxFiles) continue;
    paint->groups.push_back({fits ? PaintGroup::Token::kOwn : PaintGroup::Token::kQuiet,
                             file_colour(i, files.size()),
                             fits ? checkpoint.files()[files[i]].path : "further files", "", 0, 0});
  }
  paint_tiles(picture, *paint, [&](ChunkId chunk) -> std::uint16_t {
    if (!is_chunk(checkpoint, chunk)) return 0;
    auto item = checkpoint.item(chunk);
    if (!item || item->file == FileId::kNone) return 0;
    return static_cast<std::uint16_t>(group_of[index_of(item->file)]);
  });
  return paint;
}

std::shared_ptr<const TilePaint> paint_by_finding(const Snapshot& snapshot,
                                                  const FindingNames& names,
                                                  const PaintedTiles& picture) {
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  auto paint = std::make_shared<TilePaint>();
  paint->by = ColourBy::kFinding;
  auto chunks = checkpoint.chunks(picture.tensor);
  std::vector<std::uint16_t> group_of(chunks.size(), 0);
  paint->groups.push_back({PaintGroup::Token::kQuiet, 0, "named by none", "", 0, 0});
  std::vector<std::uint32_t> findings;
  if (snapshot.report != nullptr) findings = names.about(checkpoint, picture.tensor);
  for (const std::uint32_t f : findings) {
    if (paint->groups.size() > kMaxFindings) break;
    const Finding& finding = snapshot.report->findings[f];
    auto named = TilesOfFinding(checkpoint, picture, names, finding, f).chunks();
    if (std::find(named.begin(), named.end(), true) == named.end()) continue;
    auto group = static_cast<std::uint16_t>(paint->groups.size());
    // Findings are sorted by severity; a tile belongs to the first that names it.
    for (std::size_t i = 0; i < named.size(); ++i) {
      if (named[i] && group_of[i] == 0) group_of[i] = group;
    }
    std::string sign(1, static_cast<char>('A' + group - 1));
    float hue = 25.0f + 67.0f * static_cast<float>(group - 1);
    paint->groups.push_back({PaintGroup::Token::kOwn, from_oklch(0.68f, 0.14f, hue), finding.rule,
                             std::move(sign), 0,
                             static_cast<std::uint16_t>(kMaxFindings + 1 - group)});
  }
  paint->title = snapshot.report == nullptr  ? "not checked yet"
                 : paint->groups.size() == 1 ? "no finding names this tensor"
                                             : "the worst finding of each tile";
  paint_tiles(picture, *paint, [&](ChunkId chunk) -> std::uint16_t {
    std::size_t at = index_of(chunk) - chunks.first;
    return index_of(chunk) >= chunks.first && at < group_of.size() ? group_of[at] : 0;
  });
  // Tiles of the result have not been checked: no finding applies.
  std::fill(paint->after.begin(), paint->after.end(), std::uint16_t{0});
  return paint;
}

std::shared_ptr<const TilePaint> paint_by_statistic(const verbs::TileValues& values, ColourBy by,
                                                    const Checkpoint& checkpoint,
                                                    const PaintedTiles& picture) {
  auto paint = std::make_shared<TilePaint>();
  paint->by = by;
  paint->title = statistic_title(by);
  enum : std::uint16_t { kNotLooked, kUnread, kZero, kInfinite, kOnlyNan, kFirstStep };
  const char* zero = by == ColourBy::kNonFinite ? "none" : "all zero";
  paint->groups = {{PaintGroup::Token::kNotLooked, 0, "not checked", "?", 0, 0},
                   {PaintGroup::Token::kUnread, 0, "cannot be read", "!", 0, 100},
                   {PaintGroup::Token::kQuiet, 0, zero, "0", 0, 1},
                   {PaintGroup::Token::kSpecial, 0, "infinite", "+", 0, 98},
                   {PaintGroup::Token::kSpecial, 0, "only NaN", "×", 0, 99}};
  paint->first_step = kFirstStep;
  paint->steps = kRampSteps;
  for (std::size_t step = 0; step < kRampSteps; ++step)
    paint->groups.push_back({PaintGroup::Token::kOwn, step_colour(step), "", "", 0,
                             static_cast<std::uint16_t>(2 + step)});
  Scale scale = scale_of(values, by);
  bool counts = by == ColourBy::kZeros || values.has_numbers;
  if (!counts)
    paint->title =
        std::string(name(checkpoint.dtype(picture.tensor))) + " has no numbers to compare";
  if (scale.to >= scale.from) {
    paint->from = scale_text(scale.from, by);
    paint->to = scale_text(scale.to, by);
  }
  auto chunks = checkpoint.chunks(picture.tensor);
  auto group_of = [&](const TileNumbers& tile) -> std::uint16_t {
    if (tile.state == TileNumbers::State::kUnread) return kUnread;
    if (tile.state == TileNumbers::State::kNotLooked || !counts) return kNotLooked;
    ClassifiedValue said = classify_value(tile, by);
    if (said.value_class == ValueClass::kInfinite) return kInfinite;
    if (said.value_class == ValueClass::kOnlyNan) return kOnlyNan;
    if (said.value_class != ValueClass::kNumber) return kZero;
    return static_cast<std::uint16_t>(kFirstStep + scale.step(said.number));
  };
  paint_tiles(picture, *paint, [&](ChunkId chunk) -> std::uint16_t {
    std::size_t at = index_of(chunk) - chunks.first;
    if (index_of(chunk) < chunks.first || at >= values.tiles.size()) return kNotLooked;
    return group_of(values.tiles[at]);
  });
  paint->looked = values.done;
  return paint;
}

std::shared_ptr<const TilePaints> make_paints(const Snapshot& snapshot, const FindingNames& names,
                                              const PaintedTiles* picture,
                                              const TilePaints* before) {
  auto paints = std::make_shared<TilePaints>();
  if (before != nullptr) *paints = *before;
  if (picture == nullptr) return paints;
  auto put = [&](ColourBy by, std::shared_ptr<const TilePaint> paint) {
    paints->by[static_cast<std::size_t>(by)] = std::move(paint);
  };
  if (before == nullptr) {
    paints->bytes = verbs::tile_value_bytes(*snapshot.checkpoint, picture->tensor);
    put(ColourBy::kFile, paint_by_file(*snapshot.checkpoint, *picture));
    put(ColourBy::kFinding, paint_by_finding(snapshot, names, *picture));
  }
  const verbs::TileValues* values = tile_values_of(snapshot, picture->tensor);
  for (ColourBy by : {ColourBy::kNonFinite, ColourBy::kGreatest, ColourBy::kZeros})
    put(by, values == nullptr ? nullptr
                              : paint_by_statistic(*values, by, *snapshot.checkpoint, *picture));
  return paints;
}

}  // namespace shw
