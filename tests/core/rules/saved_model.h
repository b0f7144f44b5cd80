// A simple saver: the checkpoint that DCP writes when every rank offers its box of every tensor.
// Keeps for every retained chunk which rows its rank really had, so that a diagnosis can be checked
// without bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/formats/dcp/dcp_formats.h"
#include "core/model/builder.h"
#include "core/spec/spec.h"

namespace shw::test {

// The offer of one rank for one tensor: the box and global size that it records, and the rows that
// it has.
struct Offer {
  Box recorded;
  Extents size;
  Box truth;
};
struct SavedTensor {
  std::string fqn;
  SpecEntry entry;                                               // what the model expects
  std::function<std::optional<Offer>(std::int64_t rank)> offer;  // nullopt: the rank has no part
};

struct SavedModel {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<Spec> spec;
  std::map<std::string, std::vector<Box>> truth;  // by FQN: one box per chunk, in order
};

// Deduplication keeps one rank for equal (fqn, offsets): the one with the fewest bytes so far, or
// the lowest.
inline SavedModel save(const std::vector<SavedTensor>& tensors, std::int64_t world,
                       bool to_lowest = false) {
  struct Key {
    std::size_t tensor;
    Extents offsets;
    bool operator<(const Key& other) const {
      return std::tie(tensor, offsets) < std::tie(other.tensor, other.offsets);
    }
  };
  std::vector<Key> order;
  std::map<Key, std::vector<std::pair<std::int64_t, Offer>>> offers;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      auto offer = tensors[t].offer(rank);
      if (!offer) continue;
      Key key{t, offer->recorded.offsets};
      auto& candidates = offers[key];
      if (candidates.empty()) order.push_back(key);
      candidates.emplace_back(rank, std::move(*offer));
    }
  }
  std::vector<std::int64_t> load(static_cast<std::size_t>(world), 0);
  std::vector<std::vector<std::pair<std::int64_t, Offer>>> plans(tensors.size());
  for (const Key& key : order) {
    auto& candidates = offers[key];
    std::size_t best = 0;
    for (std::size_t i = 1; i < candidates.size() && !to_lowest; ++i) {
      if (load[static_cast<std::size_t>(candidates[i].first)] <
          load[static_cast<std::size_t>(candidates[best].first)])
        best = i;
    }
    auto& [rank, offer] = candidates[best];
    load[static_cast<std::size_t>(rank)] += volume(offer.truth.sizes).value_or(0);
    plans[key.tensor].emplace_back(rank, std::move(offer));
  }
  SavedModel out;
  out.spec = std::make_shared<Spec>();
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  std::int64_t at = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    out.spec->entries[tensors[t].fqn] = tensors[t].entry;
    auto& plan = plans[t];
    std::stable_sort(plan.begin(), plan.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    builder.add_tensor(tensors[t].fqn, Dtype::kFloat32,
                       plan.empty() ? tensors[t].entry.shape : plan.front().second.size);
    for (const auto& [rank, offer] : plan) {
      FileId file = builder.file("__" + std::to_string(rank) + "_0.distcp");
      builder.add_chunk(offer.recorded.offsets, offer.recorded.sizes, {file, at, 64});
      at += 64;
      out.truth[tensors[t].fqn].push_back(offer.truth);
    }
  }
  out.checkpoint = builder.finish();
  return out;
}

// Pseudo-random numbers that are equal on all platforms.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  std::int64_t upto(std::int64_t last) {  // 0 to last
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint32_t>(last + 1));
  }
  std::int64_t from(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + upto(static_cast<std::int64_t>(values.size()) - 1));
  }
  bool one_in(std::int64_t n) { return upto(n - 1) == 0; }

 private:
  std::mt19937 engine_;
};

inline Placement sharded(std::int64_t dim) {
  return {Placement::Kind::kShard, dim, 1};
}
inline Placement strided(std::int64_t dim, std::int64_t factor) {
  return {Placement::Kind::kStridedShard, dim, factor};
}

}  // namespace shw::test
