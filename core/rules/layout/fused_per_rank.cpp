// Fused projections that every tensor-parallel rank split for itself: rows are g0 u0 g1 u1 ... or
// q0 k0 v0 q1 k1 v1 ..., so a load with another TP size gets the right shape and wrong rows.
// Expected: g0 g1 ... u0 u1 ...
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "core/base/words.h"
#include "core/facts/facts.h"
#include "core/facts/layout/spec_layout.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// True if the spec's role says that gate and up are stacked in this tensor.
bool is_fused_gate(std::string_view role) {
  return role == "glu" || role == "fused_glu" || role == "fc1_glu" || role == "gate_up" ||
         role == "glu_fused";
}

// Row counts of the parts of a fused matrix. Roles: "glu" and its variants for two
// equal parts; "stacked:4096,1024,1024" with the rows of each part, for fewer keys
// and values than queries. Empty for other roles, or if the sum is not the tensor's
// rows.
std::vector<std::int64_t> parts_of(std::string_view role, std::int64_t rows) {
  constexpr std::string_view kStacked = "stacked:";
  if (is_fused_gate(role))
    return rows % 2 == 0 ? std::vector<std::int64_t>{rows / 2, rows / 2}
                         : std::vector<std::int64_t>{};
  if (!role.starts_with(kStacked)) return {};
  std::vector<std::int64_t> parts;
  std::int64_t left = rows;
  for (std::string_view rest = role.substr(kStacked.size());;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::int64_t part = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + comma, part);
    if (read.ec != std::errc{} || read.ptr != rest.data() + comma || part < 1 || part > left)
      return {};
    parts.push_back(part);
    left -= part;
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  return left == 0 && parts.size() > 1 ? parts : std::vector<std::int64_t>{};
}

// The permutation from rank-wise parts to whole parts. nullopt if a part is not divisible by the
// ranks: with fewer heads than ranks, keys and values are copies.
std::optional<BlocksPermuted> permutation_to_whole_parts(TensorId tensor,
                                                         const std::vector<std::int64_t>& parts,
                                                         std::int64_t ranks) {
  std::int64_t block = 0;
  for (std::int64_t rows : parts) {
    if (rows % ranks != 0) return std::nullopt;
    block = std::gcd(block, rows / ranks);
  }
  BlocksPermuted out{tensor, 0, block, {}};
  std::int64_t of_rank = 0, before = 0;  // blocks of one rank, and of its earlier parts
  for (std::int64_t rows : parts) of_rank += rows / ranks / block;
  for (std::int64_t rows : parts) {
    const std::int64_t blocks = rows / ranks / block;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      for (std::int64_t i = 0; i < blocks; ++i) out.order.push_back(rank * of_rank + before + i);
    }
    before += blocks;
  }
  return out;
}

bool is_tensor_axis(std::string_view name) {
  return name == "tp" || name == "etp" || name == "tensor" || name == "model" ||
         name == "tensor_parallel" || name == "mp";
}

// The tensor-parallel axis, if it splits dim 0 first: known by its name, or by a strided axis
// before it.
std::optional<std::size_t> tensor_axis(const SpecEntry& entry) {
  auto order = split_axis_order(entry);
  if (!order) return std::nullopt;
  bool strided =
      std::any_of(entry.placements.begin(), entry.placements.end(), [](const Placement& placement) {
        return placement.kind == Placement::Kind::kStridedShard && placement.split_factor > 1;
      });
  for (std::size_t axis : *order) {
    if (sharded_dim_of(entry.placements[axis], entry.shape.size()) != std::size_t{0}) continue;
    if (entry.mesh->axes[axis].size < 2) continue;
    if (strided || is_tensor_axis(entry.mesh->axes[axis].name)) return axis;
    return std::nullopt;
  }
  return std::nullopt;
}

// True if every chunk is inside the rows of its TP rank, recorded as one interval, so that gate and
// up of a rank are adjacent. A saver that separates them writes two.
bool is_split_per_rank(const Facts& facts, TensorId tensor, const SpecEntry& entry,
                       std::size_t axis) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<std::int64_t> writers;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)) == 0) continue;
    if (!is_inside(c.offsets(chunk), c.sizes(chunk), c.shape(tensor))) return false;
    auto writer = c.writer(chunk);
    auto rank = writer ? rank_in_mesh(facts, *entry.mesh, *writer) : std::nullopt;
    if (!rank) return false;
    Cut mine =
        chunk_of(entry.shape[0], entry.mesh->axes[axis].size, entry.mesh->coordinates(*rank)[axis]);
    std::int64_t begin = c.offsets(chunk)[0], end = begin + c.sizes(chunk)[0];
    if (begin < mine.offset || end > mine.offset + mine.size) return false;
    writers.push_back(*rank);
  }
  std::sort(writers.begin(), writers.end());
  return !writers.empty() && std::adjacent_find(writers.begin(), writers.end()) == writers.end();
}

void find_fused_per_rank(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "fused-per-rank", .severity = Severity::kWarning};
  finding.link = "TransformerEngine #2713";
  for (TensorId tensor : each_tensor(facts)) {
    const SpecEntry* entry = layout_of(facts, c.fqn(tensor));
    if (entry == nullptr || entry->role.empty() || entry->shape.empty()) continue;
    const std::vector<std::int64_t> parts = parts_of(entry->role, entry->shape[0]);
    if (parts.empty()) continue;
    if (!same(entry->shape, c.shape(tensor)) || !c.writers_are_owners(tensor)) continue;
    auto axis = tensor_axis(*entry);
    if (!axis || !is_split_per_rank(facts, tensor, *entry, *axis)) continue;
    std::int64_t ranks = entry->mesh->axes[*axis].size;
    auto blocks = permutation_to_whole_parts(tensor, parts, ranks);
    if (!blocks) continue;
    if (finding.subjects.empty()) {
      finding.cause = fmt::format(
          "{} of {} are stacked rank by rank ({} times {}): a load with a different "
          "tensor-parallel size gets wrong rows without an error.",
          is_fused_gate(entry->role) ? "Gate and up" : "The parts", c.fqn(tensor), ranks,
          is_fused_gate(entry->role) ? "gate, up" : plural(parts.size(), "part"));
      finding.evidence = {{"mesh", to_text(*entry->mesh)},
                          {"tensor_parallel_ranks", ranks},
                          {"rows_a_block", blocks->block},
                          {"rows_of_each_part", Extents(parts.begin(), parts.end())},
                          {"block_on_disk_of_true_block", Extents(blocks->order)}};
    }
    finding.subjects.emplace_back(c.fqn(tensor));
    finding.diagnoses.emplace_back(std::move(*blocks));
  }
  if (finding.subjects.empty()) return;
  finding.remedy = Remedy{"permute-blocks", true,
                          "Put all rows of each part together, all gate rows before all up rows: "
                          "nothing is lost."};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kFusedPerRank = {
    .id = "fused-per-rank",
    .depth = Depth::kMetadata,
    .title = "Gate and up rows are interleaved rank by rank",
    .teaches =
        "If each tensor-parallel rank fuses its own gate and up projection, the saved order is "
        "gate 0, up 0, gate 1, up 1, ...: it depends on the number of ranks. A load with a "
        "different tensor-parallel size gets wrong rows without an error. The repair puts all gate "
        "rows before all up rows; nothing is lost. For other fused matrices give the role in the "
        "spec: \"stacked:4096,1024,1024\" is the number of rows of queries, keys and values, in "
        "this order.",
    .lesson =
        {.drawing = R"(
  gate and up of 2 rows each, over tp 2

  expected     │ gate 0 │ gate 1 │ up 0   │ up 1   │
  saved        │ gate 0 │ up 0   │ gate 1 │ up 1   │
  written by         tp 0        │       tp 1
)",
         .remedy =
             "`shardwright repair --spec ...` puts all gate rows before all up rows: lossless. "
             "Loading with the tensor-parallel size of the save works without a repair.",
         .link = "https://github.com/NVIDIA/TransformerEngine/pull/2713"},
    .splits_rows_of_rank = true,
    .run = find_fused_per_rank,
};

}  // namespace shw
