#include "core/facts/layout/retained_chunks.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

RetainedChunk clip_to_box(const RetainedChunk& retained_chunk, const Box& box) {
  RetainedChunk out = retained_chunk;
  for (std::size_t d = 0; d < out.at.size(); ++d) {
    out.source.offsets[d] += box.offsets[d] - retained_chunk.at[d];
    out.source.sizes[d] = box.sizes[d];
    out.at[d] = box.offsets[d];
  }
  return out;
}

std::vector<Box> common(const std::vector<Box>& a, const std::vector<Box>& b) {
  std::vector<Box> out;
  for (const Box& first : a) {
    for (const Box& second : b) {
      if (auto both = intersect(first, second)) out.push_back(*both);
    }
  }
  return out;
}

}  // namespace

RetainedChunk whole_retained_chunk(ChunkId chunk, ExtentsView sizes, ExtentsView at) {
  return RetainedChunk{chunk, whole(sizes), copy_of(at)};
}

std::vector<RetainedChunk> crop_to_retained_chunks(const Checkpoint& checkpoint, TensorId source,
                                                   const Box& wanted, const Extents& at) {
  std::vector<RetainedChunk> out;
  for (ChunkId chunk : checkpoint.chunks(source)) {
    const Box saved = box_of(checkpoint, chunk);
    const auto part = intersect(saved, wanted);
    if (!part) continue;
    out.push_back({chunk, *part, at});
    for (std::size_t d = 0; d < at.size(); ++d) {
      out.back().source.offsets[d] -= saved.offsets[d];
      out.back().at[d] += part->offsets[d] - wanted.offsets[d];
    }
  }
  return out;
}

PartlyLost crop_tensor_to_shape(const Checkpoint& checkpoint, TensorId tensor,
                                const Extents& expected) {
  return {tensor, expected,
          crop_to_retained_chunks(checkpoint, tensor, whole(expected), Extents(expected.size(), 0)),
          ""};
}

Box destination(const RetainedChunk& retained_chunk) {
  return Box{retained_chunk.at, retained_chunk.source.sizes};
}

LostCount loss_of(const PartlyLost& part) {
  LostCount loss;
  for (const RetainedChunk& retained_chunk : part.retained_chunks)
    loss.kept += volume(retained_chunk.source.sizes).value_or(0);
  loss.lost = volume(part.expected).value_or(0) - loss.kept;
  if (!part.refill_from.empty()) loss.refilled = loss.lost;
  return loss;
}

LostCount loss_of(const std::vector<PartlyLost>& parts) {
  LostCount sum;
  for (const PartlyLost& part : parts) {
    LostCount loss = loss_of(part);
    sum.kept += loss.kept;
    sum.lost += loss.lost;
    sum.refilled += loss.refilled;
  }
  return sum;
}

void intersect_moment_rows(std::vector<PartlyLost*>& parts) {
  if (parts.size() < 2) return;
  std::vector<Box> known;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<Box> mine;
    for (const RetainedChunk& retained_chunk : parts[i]->retained_chunks)
      mine.push_back(destination(retained_chunk));
    known = i == 0 ? mine : common(known, mine);
  }
  for (PartlyLost* part : parts) {
    std::vector<RetainedChunk> kept;
    for (const RetainedChunk& retained_chunk : part->retained_chunks) {
      for (const Box& box : known) {
        if (auto both = intersect(destination(retained_chunk), box))
          kept.push_back(clip_to_box(retained_chunk, *both));
      }
    }
    part->retained_chunks = std::move(kept);
  }
}

namespace {

// "optimizer.state.4.": the common prefix of the moments of one parameter. States of another
// optimizer with the same number have another prefix.
std::string moment_prefix(std::string_view fqn) {
  auto path = parse_state_fqn(fqn);
  if (!path) return std::string(fqn);
  std::string name(fqn);
  return name.erase(static_cast<std::size_t>(path->kind.data() - fqn.data()), path->kind.size());
}

// nullopt unless the chunks cover the moment.
std::optional<PartlyLost> retain_complete_moment(const Checkpoint& c,
                                                 const std::vector<DifferentOrder>& orders,
                                                 TensorId tensor) {
  PartlyLost part{tensor, copy_of(c.shape(tensor)), {}, {}};
  auto order = std::find_if(orders.begin(), orders.end(),
                            [&](const DifferentOrder& item) { return item.tensor == tensor; });
  std::vector<Box> boxes;
  for (ChunkId chunk : c.chunks(tensor)) {
    ExtentsView at = c.offsets(chunk);
    if (order != orders.end()) at = order->boxes[boxes.size()].offsets;
    part.retained_chunks.push_back(whole_retained_chunk(chunk, c.sizes(chunk), at));
    boxes.push_back(destination(part.retained_chunks.back()));
  }
  return tiles_exactly(boxes, part.expected) ? std::optional(std::move(part)) : std::nullopt;
}

}  // namespace

std::vector<std::string> keep_common_moments(const Checkpoint& checkpoint,
                                             const std::vector<DifferentOrder>& orders,
                                             const std::vector<std::size_t>& moments,
                                             std::vector<PartlyLost>& parts,
                                             const std::set<TensorId>& left_alone) {
  std::vector<std::string> given_up;
  if (moments.empty()) return given_up;
  struct Moments {
    std::vector<std::size_t> damaged;  // indices in `parts`
    std::vector<PartlyLost> whole;
  };
  std::map<std::string, Moments> of_parameters;
  for (std::size_t i : moments)
    of_parameters[moment_prefix(checkpoint.fqn(parts[i].tensor))].damaged.push_back(i);
  std::set<TensorId> damaged;
  for (const PartlyLost& part : parts) damaged.insert(part.tensor);
  for (const OptimizerState& state : optimizer_states(checkpoint)) {
    if (state.role != StateRole::kMoment || damaged.contains(state.state) ||
        left_alone.contains(state.state))
      continue;
    auto found = of_parameters.find(moment_prefix(checkpoint.fqn(state.state)));
    if (found == of_parameters.end() ||
        !same(checkpoint.shape(state.state), parts[found->second.damaged.front()].expected))
      continue;
    if (auto part = retain_complete_moment(checkpoint, orders, state.state))
      found->second.whole.push_back(std::move(*part));
  }
  for (auto& [name, of_one] : of_parameters) {
    std::vector<PartlyLost*> one;
    for (std::size_t i : of_one.damaged) one.push_back(&parts[i]);
    for (PartlyLost& part : of_one.whole) one.push_back(&part);
    intersect_moment_rows(one);
  }
  for (auto& [name, of_one] : of_parameters) {
    for (PartlyLost& part : of_one.whole) {
      if (loss_of(part).lost == 0) continue;
      given_up.emplace_back(checkpoint.fqn(part.tensor));
      parts.push_back(std::move(part));
    }
  }
  return given_up;
}

std::vector<std::string> writers_by_kind(const Checkpoint& checkpoint,
                                         const std::vector<OptimizerState>& states) {
  std::map<std::string, std::set<std::uint32_t>> ranks;
  for (const OptimizerState& state : states) {
    for (ChunkId chunk : checkpoint.chunks(state.state)) {
      if (auto writer = checkpoint.writer(chunk)) ranks[state.kind].insert(*writer);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [kind, writers] : ranks) {
    std::string line = kind + " from rank";
    if (writers.size() > 1) line += "s";
    std::size_t shown = 0;
    for (std::uint32_t writer : writers) {
      line += fmt::format("{}{}", shown == 0 ? " " : ", ", writer);
      if (++shown == 8 && writers.size() > 8) {
        line += fmt::format(" and {} more", writers.size() - 8);
        break;
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string count_text(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace shw
