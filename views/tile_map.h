// One picture of tiles: quads with labels where they fit, the raster below, what is wrong over it,
// and what lies under the mouse by arithmetic.
#pragma once

#include "views/desk_state.h"
#include "views/widgets.h"

namespace shw {

struct MapPicture {
  const char* id;
  int slot = 0;  // of Layouts
  ImVec2 at;     // upper left, whole pixels; the size is the view's
  std::shared_ptr<const TileSet> tiles;
  Slice slice;
  TileView view;
  bool labels = true;
  bool seams = false;  // what moved is sewn in gold along the dim that it moved along
  std::span<const Box> bad_boxes = {};       // missing or lost: hatched
  std::span<const Box> twice_boxes = {};     // claimed by more than one tile
  std::span<const TileOrigin> origins = {};  // one a tile: where it was; or none
  Colouring colouring = {};
  std::shared_ptr<const TilePaint> paint = nullptr;      // null: as the colouring says
  std::string_view bad_word = "missing", bad_note = {};  // written on the hatched boxes
};

// Draws it and gives the tile under the mouse (or nothing); `clicked` where it was pressed.
std::optional<ChunkId> draw_map(Frame& frame, DeskState& state, const MapPicture& picture,
                                bool* clicked);
std::string offset_text(std::int64_t offset);  // "0x2D41180"
// Everything about a tile, a line each: rank, where it stands on the mesh, box, file, bytes.
std::string tile_text(const Frame& frame, ChunkId chunk);
// What is known of its checksum; only what every byte was read for is kOk.
struct CrcState {
  Sign sign = Sign::kQuiet;
  std::string text;
};
CrcState crc_state(const Frame& frame, ChunkId chunk);
// "33  (ep_shard 1, ep 1)"
std::string rank_text(const Frame& frame, std::uint32_t rank);
// Of all tensors: "wrote 412 tiles of 391 tensors, 157 MB"; empty where it is not known.
std::string share_text(const Frame& frame, std::uint32_t rank);
// Edges of a box in the picture's pixels, clipped; nothing where the slice misses it.
std::optional<ImVec4> box_on_screen(const MapPicture& picture, ExtentsView offsets,
                                    ExtentsView sizes);
void draw_expected(Frame& frame, ImDrawList* draw, const Picture& picture, const Slice& slice,
                   ImVec2 at, ImVec2 end, const TileView& view,
                   const std::optional<Colouring>& tint);
void hatch(Frame& frame, ImDrawList* draw, ImVec2 min, ImVec2 max, Rgba colour);

}  // namespace shw
