#include "core/exec/memory_shares.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/parallel.h"

namespace shw {
namespace {

// Below this a slab may not hold one element of the widest dtype.
constexpr std::uint64_t kLeastSlab = 16;

}  // namespace

Result<MemoryShares> share_memory(const Program& program,
                                  const std::vector<const Checkpoint*>& inputs,
                                  std::uint64_t memory, std::size_t workers) {
  // What is sent to each of the others, what comes from them, and what came and is written: half of
  // all.
  const std::uint64_t all = memory;
  std::uint64_t round_bytes = 0;
  if (workers > 1) {
    round_bytes = std::max(memory / 2 / (workers + 1), kLeastSlab);
    memory -= memory / 2;
  }
  const std::uint64_t slabs = 2 * worker_count();  // what is read and what is made, by thread
  bool decodes = std::any_of(program.sources.begin(), program.sources.end(),
                             [](const auto& one) { return one.form == SourceForm::kItem; });
  MemoryShares shares;
  Limits& limits = shares.limits;
  const std::uint64_t share = (decodes ? memory / 2 : memory) / slabs;
  limits.slab_bytes = std::clamp(share, kLeastSlab, limits.slab_bytes);
  limits.turned_bytes =
      decodes ? limits.slab_bytes : std::clamp(share, kLeastSlab, limits.turned_bytes);
  if (workers > 1) {
    limits.slab_bytes = std::min(limits.slab_bytes, round_bytes);
    // Every thread finds something to do in a round.
    limits.turned_bytes = std::clamp(round_bytes / worker_count(), limits.slab_bytes,
                                     std::max(limits.turned_bytes, limits.slab_bytes));
  }
  shares.round_bytes = round_bytes;
  // What is decoded keeps its half.
  limits.under_way_bytes = decodes ? 2 * limits.turned_bytes : memory / worker_count();
  std::uint64_t taken = slabs * limits.turned_bytes;
  shares.decoded_bytes = memory - std::min(taken, memory);
  for (const ProgramSource& source : program.sources) {
    if (source.form != SourceForm::kItem || source.input >= inputs.size()) continue;
    const Checkpoint& input = *inputs[source.input];
    if (source.chunk >= input.chunk_count()) continue;
    ChunkId chunk{source.chunk};
    std::uint64_t needed = decoding_bytes(input, chunk, source.length);
    if (needed <= shares.decoded_bytes) continue;
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("has to be decoded whole, which takes {} bytes, and of the {} that may "
                    "be taken {} are left for it",
                    needed, all, shares.decoded_bytes),
        {program.names[source.file], std::nullopt, std::string(input.fqn(input.tensor_of(chunk)))},
        "let it take more with --memory");
  }
  return shares;
}

}  // namespace shw
