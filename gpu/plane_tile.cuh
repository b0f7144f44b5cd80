// Tiles of a transposed plane.
#pragma once

#include "gpu/device.cuh"

namespace shw {

struct Tile {
  Spot at;
  std::uint32_t row, column;  // position in the plane
};

// The tile with this number; tiles have `height` x `width` elements.
__device__ __forceinline__ Tile tile_of(const DeviceJob& job, std::uint32_t number,
                                        std::uint32_t height, std::uint32_t width) {
  const std::uint32_t above = divided(number, job.tiles_by[1]);
  const std::uint32_t plane = divided(above, job.tiles_by[0]);
  Tile tile;
  tile.column = (number - above * job.tiles[1]) * width;
  tile.row = (above - plane * job.tiles[0]) * height;
  tile.at = unit_position(job, job.ndim - 2, plane);
  step(tile.at, job.dims[job.ndim - 2], tile.row);
  step(tile.at, job.dims[job.ndim - 1], tile.column);
  return tile;
}

}  // namespace shw
