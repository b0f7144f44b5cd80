#include "core/exec/spill_plan.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "core/formats/items/decoded_items.h"

namespace shw {
namespace {

// The first and the last output that read an item.
struct ItemUse {
  SourceId source{};
  std::size_t first = 0, last = 0;
  std::uint64_t bytes = 0;      // decoded size
  std::uint64_t to_decode = 0;  // memory while decoding, the elements included
};

// In order of first use.
std::vector<ItemUse> item_uses(const Program& program, const std::vector<const Checkpoint*>& inputs,
                               std::span<const OutputId> order) {
  constexpr auto kUnused = static_cast<std::uint32_t>(-1);
  std::vector<std::uint32_t> use_of(program.sources.size(), kUnused);
  std::vector<ItemUse> uses;
  const std::size_t steps = order.empty() ? program.outputs.size() : order.size();
  for (std::size_t step = 0; step < steps; ++step) {
    const OutputId output =
        order.empty() ? OutputId{static_cast<std::uint32_t>(step)} : order[step];
    for (SourceId source : decoded_sources(program, output)) {
      std::uint32_t& use = use_of[static_cast<std::size_t>(source)];
      if (use == kUnused) {
        const ProgramSource& row = program.source(source);
        const bool is_there =
            row.input < inputs.size() && row.chunk < inputs[row.input]->chunk_count();
        use = static_cast<std::uint32_t>(uses.size());
        uses.push_back({source, step, step, row.length,
                        is_there
                            ? decoding_bytes(*inputs[row.input], ChunkId{row.chunk}, row.length)
                            : row.length});
      }
      uses[use].last = step;
    }
  }
  return uses;
}

// The items held while the outputs are processed in order.
class LiveDecodedItems {
 public:
  // Releases all items that no output from `step` on reads.
  void go_to(std::size_t step) {
    while (!ends_.empty() && ends_.top().first < step) {
      bytes_ -= ends_.top().second;
      ends_.pop();
    }
  }
  void add(const ItemUse& use) {
    bytes_ += use.bytes;
    ends_.emplace(use.last, use.bytes);
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  using End = std::pair<std::size_t, std::uint64_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::uint64_t bytes_ = 0;
};

// Maximum over time, if every other thread may lag one output behind (and keep its items) or be one
// item ahead.
std::uint64_t peak_disk_bytes(std::span<const ItemUse> uses, std::size_t threads) {
  LiveDecodedItems held;
  std::uint64_t most = 0, all = 0, largest = 0, largest_output = 0;
  for (std::size_t i = 0; i < uses.size();) {
    const std::size_t step = uses[i].first;
    held.go_to(step);
    std::uint64_t of_output = 0;
    for (; i < uses.size() && uses[i].first == step; ++i) {
      held.add(uses[i]);
      all += uses[i].bytes;
      of_output += uses[i].bytes;
      largest = std::max(largest, uses[i].bytes);
    }
    most = std::max(most, held.bytes());
    largest_output = std::max(largest_output, of_output);
  }
  return std::min(all, most + (threads - 1) * (largest_output + largest));
}

}  // namespace

bool needs_decoded_items(const Program& program) {
  return std::any_of(program.sources.begin(), program.sources.end(),
                     [](const auto& source) { return source.form == SourceForm::kItem; });
}

std::vector<SourceId> decoded_sources(const Program& program, OutputId output) {
  std::vector<SourceId> found;
  auto add = [&](SourceId source) {
    if (source == SourceId::kNone || program.source(source).form != SourceForm::kItem) return;
    found.push_back(source);
  };
  const JobRange jobs = jobs_of(program, output);
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    add(program.jobs[j].source);
    add(program.jobs[j].factor);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

SpillPlan plan_spill(const Program& program, const std::vector<const Checkpoint*>& inputs,
                     std::span<const OutputId> order, const SpillLimits& room) {
  SpillPlan places;
  if (!needs_decoded_items(program)) return places;
  places.ahead = room.in_order ? room.threads - 1 : 0;
  std::vector<ItemUse> on_disk;
  LiveDecodedItems in_memory;
  for (const ItemUse& use : item_uses(program, inputs, order)) {
    in_memory.go_to(use.first);
    const std::uint64_t others = room.in_order ? in_memory.bytes() : room.memory / 2;
    if (use.to_decode <= room.memory && others <= room.memory - use.to_decode) {
      in_memory.add(use);
      continue;
    }
    on_disk.push_back(use);
    places.on_disk.push_back(use.source);
    places.disk_bytes += use.bytes;
  }
  places.most_at_once = room.in_order ? peak_disk_bytes(on_disk, room.threads) : places.disk_bytes;
  return places;
}

}  // namespace shw
