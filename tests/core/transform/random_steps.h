// Random small checkpoints in memory, and random plans that can be taken on them.
#pragma once

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/formats/dcp/dcp_write.h"
#include "core/formats/open.h"
#include "core/memory_store.h"
#include "core/program/random_program.h"
#include "core/tensor/strided_copy.h"
#include "core/transform/reference_steps.h"

namespace shw::test {

inline constexpr Dtype kDrawnFloats[] = {Dtype::kFloat64,      Dtype::kFloat32,
                                         Dtype::kFloat16,      Dtype::kBfloat16,
                                         Dtype::kFloat8E4m3fn, Dtype::kFloat8E5m2};
inline constexpr Dtype kDrawnOthers[] = {Dtype::kInt64, Dtype::kInt32, Dtype::kUint8, Dtype::kBool};

inline bool is_drawn_float(Dtype dtype) {
  return std::find(std::begin(kDrawnFloats), std::end(kDrawnFloats), dtype) !=
         std::end(kDrawnFloats);
}

inline PlainTensor random_tensor(Dtype dtype, Extents shape, Dice& dice) {
  PlainTensor tensor{dtype, std::move(shape), {}};
  auto count = static_cast<std::size_t>(*volume(tensor.shape));
  tensor.elements.resize(count);
  tensor.lost.resize(count, false);
  tensor.out_of_range.resize(count, false);
  for (Element& element : tensor.elements) {
    element = {};
    for (std::size_t i = 0; i < size_of(dtype); ++i)
      element[i] =
          static_cast<std::byte>(dtype == Dtype::kBool ? dice.pick(0, 1) : dice.pick(0, 255));
  }
  return tensor;
}

inline Bytes bytes_in(const PlainTensor& tensor, const Box& box) {
  Bytes out;
  each_coordinate(box.sizes, [&](Extents at) {
    for (std::size_t d = 0; d < at.size(); ++d) at[d] += box.offsets[d];
    const Element& element = tensor.elements[index_in(at, tensor.shape)];
    out.insert(out.end(), element.begin(), element.begin() + size_of(tensor.dtype));
  });
  return out;
}

inline PlainCheckpoint random_tensors(Dice& dice) {
  PlainCheckpoint all;
  std::int64_t count = dice.pick(1, 4);
  for (std::int64_t t = 0; t < count; ++t) {
    Extents shape(static_cast<std::size_t>(dice.pick(0, 4)));
    for (std::int64_t& extent : shape) extent = dice.pick(1, 7);
    Dtype dtype = dice.one_in(4) ? kDrawnOthers[dice.pick(0, 3)] : kDrawnFloats[dice.pick(0, 5)];
    std::string fqn = "layers." + std::to_string(t) + ".weight";
    all[fqn] = random_tensor(dtype, shape, dice);
    // A second tensor of the same kind, so that they can be joined.
    if (dice.one_in(3)) all["twin." + std::to_string(t)] = random_tensor(dtype, shape, dice);
  }
  if (dice.one_in(3)) {
    Extents shape{dice.pick(1, 6), dice.pick(1, 6)}, factors = shape;
    for (std::int64_t& extent : factors) extent = (extent + 1) / 2;
    all["quantised"] = random_tensor(Dtype::kFloat8E4m3fn, shape, dice);
    all["quantised_scale_inv"] = random_tensor(Dtype::kFloat32, factors, dice);
  }
  return all;
}

// Saves "/ck" in the store, cut at random, with tiles written by random ranks.
inline void save_in(MemoryStore& store, const PlainCheckpoint& all, Dice& dice) {
  auto folder = store.make_folder("/ck");
  REQUIRE(folder.has_value());
  std::map<std::uint32_t, std::unique_ptr<ByteSink>> sinks;
  DcpMetadata metadata;
  for (const auto& [fqn, tensor] : all) {
    DcpTensor out{fqn, tensor.dtype, false, tensor.shape, {}, {}};
    for (const Box& box : random_boxes(tensor.shape, dice)) {
      auto writer = static_cast<std::uint32_t>(dice.pick(0, 2));
      std::string file = "__" + std::to_string(writer) + "_0.distcp";
      auto& sink = sinks[writer];
      if (sink == nullptr) {
        auto made = (*folder)->create(file);
        REQUIRE(made.has_value());
        sink = std::move(*made);
      }
      std::uint64_t offset = sink->position();
      auto length = write_torch_item(*sink, tensor.dtype, box.sizes, bytes_in(tensor, box));
      REQUIRE(length.has_value());
      out.chunks.push_back({box.offsets, box.sizes, {file, offset, *length, {}}});
    }
    metadata.tensors.push_back(std::move(out));
  }
  for (auto& [writer, sink] : sinks) REQUIRE(sink->finish());
  auto sink = (*folder)->create(".metadata");
  REQUIRE(sink.has_value());
  REQUIRE(write_dcp_metadata(metadata, **sink));
  REQUIRE((*sink)->finish());
}

inline std::shared_ptr<const Checkpoint> open_in(const Store& store, const std::string& path) {
  auto folder = store.read_folder(path);
  REQUIRE(folder.has_value());
  auto checkpoint = open_checkpoint(*folder);
  if (!checkpoint) FAIL(checkpoint.error().message);
  return *checkpoint;
}

inline Extents random_order(std::size_t count, Dice& dice) {
  Extents order(count);
  std::iota(order.begin(), order.end(), 0);
  dice.shuffle(order);
  return order;
}

// Random parts of `extent`, none of them empty.
inline Extents random_parts(std::int64_t extent, Dice& dice) {
  Extents sizes;
  while (extent > 0) {
    sizes.push_back(dice.pick(1, extent));
    extent -= sizes.back();
  }
  return sizes;
}

inline Box random_box(const Extents& shape, Dice& dice) {
  Box box = whole(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    box.offsets[d] = dice.pick(0, shape[d] - 1);
    box.sizes[d] = dice.pick(1, shape[d] - box.offsets[d]);
  }
  return box;
}

// Draws steps that are valid for the tensors as they are by then.
class StepDrawer {
 public:
  StepDrawer(const PlainCheckpoint& all, Dice& dice, bool only_lossless)
      : all_(all), dice_(dice), only_lossless_(only_lossless) {}

  Step draw() {
    while (true) {
      if (auto step = try_draw()) return *step;
    }
  }

 private:
  std::optional<Step> try_draw() {
    auto at = all_.begin();
    std::advance(at, dice_.pick(0, static_cast<std::int64_t>(all_.size()) - 1));
    const auto& [fqn, tensor] = *at;
    auto ndim = static_cast<std::int64_t>(tensor.shape.size());
    // Filled weights cannot be dequantised, so this one stays unchanged until that step.
    if (fqn == "quantised" && !only_lossless_ && dice_.one_in(2)) return dequantise();
    switch (fqn == "quantised" ? dice_.pick(0, 6) : dice_.pick(0, only_lossless_ ? 6 : 13)) {
      case 0:
        return PermuteDimsStep{{fqn}, random_order(tensor.shape.size(), dice_)};
      case 1:
        return ndim == 0 ? std::nullopt : std::optional(permute_blocks(fqn, tensor));
      case 2:
        return ndim == 0 ? std::nullopt : std::optional(split(fqn, tensor));
      case 3:
        return concat(fqn, tensor);
      case 4:
        return RenameStep{fqn, "renamed." + std::to_string(made_++)};
      case 5:
        return reshard(fqn, tensor);
      case 6:
        return retile(fqn, tensor);
      case 7:
        return CreateTensorsStep{{"created." + std::to_string(made_++)},
                                 tensor.dtype,
                                 tensor.shape,
                                 static_cast<double>(dice_.pick(0, 1))};
      case 8:
        return cast(fqn, tensor);
      case 9:
        return pad(fqn, tensor);
      case 10:
        return TrimStep{{fqn}, random_box(tensor.shape, dice_)};
      case 11: {
        std::vector<Box> boxes{random_box(tensor.shape, dice_), random_box(tensor.shape, dice_)};
        if (dice_.one_in(2)) return MaskStep{{fqn}, boxes, static_cast<double>(dice_.pick(0, 1))};
        FillStep fill{{fqn}};
        fill.boxes = boxes;
        fill.value = static_cast<double>(dice_.pick(0, 1));
        return fill;
      }
      case 12:
        return all_.size() < 2 ? std::nullopt : std::optional<Step>(DropStep{{fqn}});
      default:
        return dequantise();
    }
  }

  Step permute_blocks(const std::string& fqn, const PlainTensor& tensor) {
    PermuteBlocksStep step{{fqn}};
    step.dim = dice_.pick(0, static_cast<std::int64_t>(tensor.shape.size()) - 1);
    step.sizes = random_parts(tensor.shape[static_cast<std::size_t>(step.dim)], dice_);
    step.order = random_order(step.sizes.size(), dice_);
    return step;
  }
  Step split(const std::string& fqn, const PlainTensor& tensor) {
    SplitStep step{fqn};
    step.dim = dice_.pick(0, static_cast<std::int64_t>(tensor.shape.size()) - 1);
    std::int64_t rows = tensor.shape[static_cast<std::size_t>(step.dim)];
    step.drop_dim = dice_.one_in(3);
    step.sizes =
        step.drop_dim ? Extents(static_cast<std::size_t>(rows), 1) : random_parts(rows, dice_);
    for (std::size_t i = 0; i < step.sizes.size(); ++i)
      step.into.push_back("split." + std::to_string(made_++));
    return step;
  }
  std::optional<Step> concat(const std::string& fqn, const PlainTensor& tensor) {
    ConcatStep step;
    step.into = "joined." + std::to_string(made_++);
    auto ndim = static_cast<std::int64_t>(tensor.shape.size());
    step.new_dim = ndim == 0 || dice_.one_in(3);
    if (ndim >= 5 && step.new_dim) return std::nullopt;
    step.dim = dice_.pick(0, step.new_dim ? ndim : ndim - 1);
    auto goes_along = [&](const PlainTensor& other) {
      if (other.dtype != tensor.dtype || other.shape.size() != tensor.shape.size()) return false;
      for (std::size_t d = 0; d < other.shape.size(); ++d) {
        bool free = !step.new_dim && d == static_cast<std::size_t>(step.dim);
        if (!free && other.shape[d] != tensor.shape[d]) return false;
      }
      return true;
    };
    for (const auto& [name, other] : all_) {
      if (name != fqn && goes_along(other) && volume(other.shape).value_or(0) < 2000)
        step.tensors.push_back(name);
    }
    step.tensors.push_back(fqn);
    dice_.shuffle(step.tensors);
    if (step.tensors.size() > 3) step.tensors.resize(3);
    return step;
  }
  Step reshard(const std::string& fqn, const PlainTensor& tensor) {
    ReshardStep step{{fqn}, {{{"dp", dice_.pick(1, 3)}, {"tp", dice_.pick(1, 3)}}}, {}};
    auto ndim = static_cast<std::int64_t>(tensor.shape.size());
    for (int axis = 0; axis < 2; ++axis) {
      Placement placement;
      if (ndim != 0 && !dice_.one_in(4)) {
        placement.kind = dice_.one_in(4) ? Placement::Kind::kStridedShard : Placement::Kind::kShard;
        placement.dim = dice_.pick(0, ndim - 1);
        if (placement.kind == Placement::Kind::kStridedShard)
          placement.split_factor = dice_.pick(1, 3);
      }
      step.placements.push_back(placement);
    }
    return step;
  }
  Step retile(const std::string& fqn, const PlainTensor& tensor) {
    RetileStep step{{fqn}, {}};
    for (Box& box : random_boxes(tensor.shape, dice_))
      step.tiles.push_back({std::move(box), static_cast<std::uint32_t>(dice_.pick(0, 3))});
    return step;
  }
  std::optional<Step> cast(const std::string& fqn, const PlainTensor& tensor) {
    if (!is_drawn_float(tensor.dtype) || fqn.ends_with("_scale_inv")) return std::nullopt;
    return CastStep{{fqn}, kDrawnFloats[dice_.pick(0, 5)]};
  }
  std::optional<Step> pad(const std::string& fqn, const PlainTensor& tensor) {
    PadStep step{{fqn}};
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      step.before.push_back(dice_.pick(0, 2));
      step.after.push_back(dice_.pick(0, 2));
    }
    step.value = static_cast<double>(dice_.pick(0, 1));
    return step;
  }
  std::optional<Step> dequantise() {
    for (const auto& [fqn, tensor] : all_) {
      auto factors = all_.find(fqn + "_scale_inv");
      bool fits = factors != all_.end() && factors->second.dtype == Dtype::kFloat32 &&
                  is_drawn_float(tensor.dtype) && tensor.dtype == Dtype::kFloat8E4m3fn &&
                  factors->second.shape.size() == tensor.shape.size() && !tensor.shape.empty();
      for (std::size_t d = 0; fits && d < tensor.shape.size(); ++d)
        fits = factors->second.shape[d] == (tensor.shape[d] + 1) / 2;
      bool untouched = fqn == "quantised";
      if (!fits || !untouched) continue;
      DequantiseStep step{{fqn}};
      step.block = Extents(tensor.shape.size(), 2);
      step.dtype = kDrawnFloats[dice_.pick(0, 3)];
      return step;
    }
    return std::nullopt;
  }

  const PlainCheckpoint& all_;
  Dice& dice_;
  bool only_lossless_;
  int made_ = 0;
};

}  // namespace shw::test
