// Colourings of tiles other than by writer: a group per tile, computed once per snapshot outside of
// frames, and the legend text of each group.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/session/snapshot.h"
#include "core/tiles/tile_set.h"
#include "views/color.h"
#include "views/finding_names.h"
#include "views/theme.h"

namespace shw {

enum class ColourBy : std::uint8_t { kWriter, kFile, kFinding, kNonFinite, kGreatest, kZeros };
inline constexpr std::size_t kColourings = 6;
// "file"; "writer" also for mesh axes.
std::string_view name(ColourBy by);
inline bool is_statistic(ColourBy by) {
  return by >= ColourBy::kNonFinite;
}

// The tile sets of one tensor's pictures.
struct PaintedTiles {
  TensorId tensor{};
  std::shared_ptr<const TileSet> saved, after;  // `after` may be null
};

// Tiles of one colour: a theme token, or a colour independent of themes.
struct PaintGroup {
  enum class Token : std::uint8_t { kOwn, kQuiet, kNotLooked, kUnread, kSpecial } token;
  Rgba own = 0;
  std::string label;         // "__3_0.distcp"; empty for steps of a scale
  std::string sign;          // "A", drawn on tiles so that groups differ not only in colour
  std::uint32_t tiles = 0;   // number of saved tiles
  std::uint16_t weight = 0;  // the heaviest group in a pixel wins
};
Rgba colour_of(const PaintGroup& group, const TilePalette& palette);

// One colouring of one tensor's pictures.
struct TilePaint {
  ColourBy by = ColourBy::kWriter;
  std::vector<PaintGroup> groups;
  std::vector<std::uint16_t> saved, after;  // group per tile of Picture; `after` may be empty
  std::string title;                        // "17 files", "largest |x| of a tile"
  // Statistics: the scale's steps in `groups`, and its range.
  std::uint16_t first_step = 0, steps = 0;
  std::string from, to;
  std::uint32_t looked = 0, of = 0;  // tiles read, and all tiles
};

// All paints of a picture; statistics are null if no tile has been read.
struct TilePaints {
  std::array<std::shared_ptr<const TilePaint>, kColourings> by;
  std::uint64_t bytes = 0;  // bytes that reading all tiles takes
  const std::shared_ptr<const TilePaint>& operator[](ColourBy which) const {
    return by[static_cast<std::size_t>(which)];
  }
};

std::shared_ptr<const TilePaint> paint_by_file(const Checkpoint& checkpoint,
                                               const PaintedTiles& picture);
// `names`: of the snapshot's report.
std::shared_ptr<const TilePaint> paint_by_finding(const Snapshot& snapshot,
                                                  const FindingNames& names,
                                                  const PaintedTiles& picture);
std::shared_ptr<const TilePaint> paint_by_statistic(const verbs::TileValues& values, ColourBy by,
                                                    const Checkpoint& checkpoint,
                                                    const PaintedTiles& picture);
// All paints; unchanged ones are taken from `before`.
std::shared_ptr<const TilePaints> make_paints(const Snapshot& snapshot, const FindingNames& names,
                                              const PaintedTiles* picture,
                                              const TilePaints* before);

}  // namespace shw
