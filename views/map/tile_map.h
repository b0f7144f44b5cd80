// Draws a picture of tiles: quads with labels, the raster, highlights of wrong areas, and hit tests
// by arithmetic.
#pragma once

#include "views/ui_state.h"
#include "views/widgets.h"

namespace shw {

struct MapPicture {
  const char* id;
  int slot = 0;  // slot in Layouts
  ImVec2 at;     // upper left in whole pixels; size as in the view
  std::shared_ptr<const TileSet> tiles;
  Slice slice;
  TileView view;
  bool labels = true;
  bool seams = false;                   // outline moved tiles in gold along the dim of their move
  std::span<const Box> bad_boxes = {};  // missing or lost: hatched
  std::span<const Box> filled_boxes = {};      // filled by an earlier repair: hatched
  std::span<const Box> overlapped_boxes = {};  // covered by more than one tile
  std::span<const TileOrigin> origins = {};    // one per tile, or empty
  Colouring colouring = {};
  std::shared_ptr<const TilePaint> paint = nullptr;  // null: according to the colouring
  std::string_view problem_word = "missing", problem_note = {},
                   filled_note = {};  // labels of hatched boxes
};

// Draws the picture and returns the tile under the mouse; sets `clicked` on a click.
std::optional<ChunkId> draw_map(Frame& frame, UiState& state, const MapPicture& picture,
                                bool* clicked);
std::string offset_text(std::int64_t offset);  // "0x2D41180"
// Details of a tile, one per line: rank, mesh coordinates, box, file, bytes.
std::string tile_text(const Frame& frame, ChunkId chunk);
// State of a tile's checksum; kOk only after every byte was read.
struct CrcState {
  Sign sign = Sign::kQuiet;
  std::string text;
};
CrcState crc_state(const Frame& frame, ChunkId chunk);
// "33  (ep_shard 1, ep 1)"
std::string rank_text(const Frame& frame, std::uint32_t rank);
// "wrote 412 tiles of 391 tensors, 157 MB"; empty if unknown.
std::string share_text(const Frame& frame, std::uint32_t rank);
// The box in pixels of the picture, clipped; nullopt if the slice does not intersect it.
std::optional<ImVec4> box_on_screen(const MapPicture& picture, ExtentsView offsets,
                                    ExtentsView sizes);
void draw_expected(Frame& frame, ImDrawList* draw, const Picture& picture, const Slice& slice,
                   ImVec2 at, ImVec2 end, const TileView& view,
                   const std::optional<Colouring>& tint);
void draw_hatching(Frame& frame, ImDrawList* draw, ImVec2 min, ImVec2 max, Rgba colour);

}  // namespace shw
