// What tiles are coloured by beside their writer: a group for every tile, made once a snapshot and
// outside any frame, and what each group is called in the legend.
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
#include "views/theme.h"

namespace shw {

enum class ColourBy : std::uint8_t { kWriter, kFile, kFinding, kOdd, kGreatest, kZeros };
inline constexpr std::size_t kColourings = 6;
// "file"; "writer" for a mesh axis too.
std::string_view name(ColourBy by);
inline bool is_statistic(ColourBy by) {
  return by >= ColourBy::kOdd;
}

// Of one tensor's pictures.
struct PaintedTiles {
  TensorId tensor{};
  std::shared_ptr<const TileSet> saved, after;  // `after` may be null
};

// Tiles of one colour. A token is the theme's; a colour of its own stands in every theme.
struct PaintGroup {
  enum class Token : std::uint8_t { kOwn, kQuiet, kNotLooked, kUnread, kSpecial } token;
  Rgba own = 0;
  std::string label;         // "__3_0.distcp"; of a step of a scale: empty
  std::string sign;          // "A": stands on the tiles too, so that nothing relies on colour alone
  std::uint32_t tiles = 0;   // of what is saved
  std::uint16_t weight = 0;  // of several in one pixel the heaviest is seen
};
Rgba colour_of(const PaintGroup& group, const TilePalette& palette);

// One colouring of one tensor's pictures.
struct TilePaint {
  ColourBy by = ColourBy::kWriter;
  std::vector<PaintGroup> groups;
  std::vector<std::uint16_t> saved, after;  // one a tile of Picture's; `after` may be empty
  std::string title;                        // "17 files", "largest |x| of a tile"
  // Of a statistic: where its steps are in `groups`, and what they go from and to.
  std::uint16_t first_step = 0, steps = 0;
  std::string from, to;
  std::uint32_t looked = 0, of = 0;  // tiles
};

// Of a picture; those of statistics are null where nobody has looked at the tiles.
struct TilePaints {
  std::array<std::shared_ptr<const TilePaint>, kColourings> by;
  std::uint64_t bytes = 0;  // that looking at the values of all tiles reads
  const std::shared_ptr<const TilePaint>& operator[](ColourBy which) const {
    return by[static_cast<std::size_t>(which)];
  }
};

std::shared_ptr<const TilePaint> paint_by_file(const Checkpoint& checkpoint,
                                               const PaintedTiles& picture);
std::shared_ptr<const TilePaint> paint_by_finding(const Snapshot& snapshot,
                                                  const PaintedTiles& picture);
std::shared_ptr<const TilePaint> paint_by_statistic(const verbs::TileValues& values, ColourBy by,
                                                    const Checkpoint& checkpoint,
                                                    const PaintedTiles& picture);
// All of them; `before` gives those that depend on nothing that has changed.
std::shared_ptr<const TilePaints> make_paints(const Snapshot& snapshot, const PaintedTiles* picture,
                                              const TilePaints* before);

}  // namespace shw
