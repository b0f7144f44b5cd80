// Plans where decoded items are kept between the first and the last part that reads them, so that
// each is decoded once: in memory as long as all concurrently needed items fit, otherwise in
// unnamed temporary files next to the output.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/program/program.h"

namespace shw {

struct SpillPlan {
  std::vector<SourceId> on_disk;  // in order of first use
  std::uint64_t disk_bytes = 0;   // total bytes of their elements
  // Maximum bytes on disk at any time. Elements that must be reordered need twice as much, which is
  // known only when they are opened.
  std::uint64_t most_at_once = 0;
  std::size_t ahead = 0;  // how many items may be decoded ahead of use
};

// The limits for keeping decoded items.
struct SpillLimits {
  std::uint64_t memory = 0;  // for decoded items and the decoder
  std::size_t threads = 1;   // number of concurrent threads
  bool in_order = true;      // outputs are written in sequence, apart from these threads
};

// `order`: the sequence of outputs; empty: program order. Without `in_order` the set of
// concurrently needed items is unknown: an item that needs more than half of the memory alone goes
// to disk.
SpillPlan plan_spill(const Program& program, const std::vector<const Checkpoint*>& inputs,
                     std::span<const OutputId> order, const SpillLimits& room);

// True if the program reads any item that must be decoded.
bool needs_decoded_items(const Program& program);

// The sources of an output that must be decoded, each once.
std::vector<SourceId> decoded_sources(const Program& program, OutputId output);

}  // namespace shw
