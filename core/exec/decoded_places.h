// Where the items of a program that have to be decoded are held, each from the first part that
// reads it to the last, so that it is decoded once: in memory, as long as there is room for all
// that are held at a time, else in files without a name beside what is written.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/program/program.h"

namespace shw {

struct DecodedPlaces {
  std::vector<SourceId> on_disk;  // in the order in which they are first read
  std::uint64_t disk_bytes = 0;   // of their elements
  // Of that, on the disk at a time. Elements that have to be put in order take twice as much
  // meanwhile, which shows when they are opened.
  std::uint64_t most_at_once = 0;
  std::size_t ahead = 0;  // how many may be decoded before they are asked for
};

// Who reads, and what may be taken for it.
struct DecodedRoom {
  std::uint64_t memory = 0;  // of decoded items, with what decoding takes meanwhile
  std::size_t threads = 1;   // at work at a time
  bool in_order = true;      // outputs are made one after the other, but for these threads
};

// `order`: outputs as they are made; empty: as the program has them. Of those that are not made in
// order nothing is known of who else is held: what takes more than half of the room by itself goes
// to the disk.
DecodedPlaces place_decoded(const Program& program, const std::vector<const Checkpoint*>& inputs,
                            std::span<const OutputId> order, const DecodedRoom& room);

// Whether it has such items at all.
bool decodes_items(const Program& program);

// The sources that an output reads and that have to be decoded, each once.
std::vector<SourceId> decoded_sources(const Program& program, OutputId output);

}  // namespace shw
