#include "core/facts/survivors.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace shw {
namespace {

Survivor restricted(const Survivor& survivor, const Box& box) {
  Survivor out = survivor;
  for (std::size_t d = 0; d < out.at.size(); ++d) {
    out.source.offsets[d] += box.offsets[d] - survivor.at[d];
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

Survivor whole_survivor(ChunkId chunk, ExtentsView sizes, ExtentsView at) {
  return Survivor{chunk, whole(sizes), copy_of(at)};
}

Box destination(const Survivor& survivor) {
  return Box{survivor.at, survivor.source.sizes};
}

Loss loss_of(const PartlyLost& part) {
  Loss loss;
  for (const Survivor& survivor : part.survivors)
    loss.kept += volume(survivor.source.sizes).value_or(0);
  loss.lost = volume(part.expected).value_or(0) - loss.kept;
  if (!part.refill_from.empty()) loss.refilled = loss.lost;
  return loss;
}

Loss loss_of(const std::vector<PartlyLost>& parts) {
  Loss sum;
  for (const PartlyLost& part : parts) {
    Loss loss = loss_of(part);
    sum.kept += loss.kept;
    sum.lost += loss.lost;
    sum.refilled += loss.refilled;
  }
  return sum;
}

void keep_common_rows(std::vector<PartlyLost*>& parts) {
  if (parts.size() < 2) return;
  std::vector<Box> known;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<Box> mine;
    for (const Survivor& survivor : parts[i]->survivors) mine.push_back(destination(survivor));
    known = i == 0 ? mine : common(known, mine);
  }
  for (PartlyLost* part : parts) {
    std::vector<Survivor> kept;
    for (const Survivor& survivor : part->survivors) {
      for (const Box& box : known) {
        if (auto both = intersect(destination(survivor), box))
          kept.push_back(restricted(survivor, *both));
      }
    }
    part->survivors = std::move(kept);
  }
}

namespace {

// Nothing where its chunks do not make it up.
std::optional<PartlyLost> whole_moment(const Checkpoint& c, TensorId tensor) {
  PartlyLost part{tensor, copy_of(c.shape(tensor)), {}, {}};
  for (ChunkId chunk : c.chunks(tensor))
    part.survivors.push_back(whole_survivor(chunk, c.sizes(chunk), c.offsets(chunk)));
  return loss_of(part).lost == 0 ? std::optional(std::move(part)) : std::nullopt;
}

}  // namespace

std::vector<std::string> keep_common_moments(const Checkpoint& checkpoint,
                                             const MomentParts& moments,
                                             std::vector<PartlyLost>& parts) {
  std::vector<std::string> given_up;
  if (moments.empty()) return given_up;
  std::set<TensorId> damaged;
  for (const PartlyLost& part : parts) damaged.insert(part.tensor);
  std::map<std::string, std::vector<PartlyLost>> whole;
  for (const OptimizerState& state : optimizer_states(checkpoint)) {
    auto found = moments.find(state.key);
    if (state.role != StateRole::kMoment || found == moments.end() ||
        damaged.contains(state.state) ||
        !same(checkpoint.shape(state.state), parts[found->second.front()].expected))
      continue;
    if (auto part = whole_moment(checkpoint, state.state))
      whole[state.key].push_back(std::move(*part));
  }
  for (const auto& [key, indices] : moments) {
    std::vector<PartlyLost*> one;
    for (std::size_t i : indices) one.push_back(&parts[i]);
    for (PartlyLost& part : whole[key]) one.push_back(&part);
    keep_common_rows(one);
  }
  for (auto& [key, of_parameter] : whole) {
    for (PartlyLost& part : of_parameter) {
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
