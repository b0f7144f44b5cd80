#include "core/learn/prove_map.h"

#include <algorithm>
#include <map>

#include "core/base/parallel.h"
#include "core/facts/values/tensor_pieces.h"
#include "core/maps/choose_map.h"
#include "core/maps/map_steps.h"
#include "core/tensor/cast.h"
#include "core/tiles/blocks.h"
#include "core/transform/named_entries.h"
#include "core/transform/part_reader.h"

namespace shw {
namespace {

// Bytes per side that are compared at a time.
constexpr std::int64_t kProvedBlockBytes = std::int64_t{256} << 10;
// Limit on decoded items of all threads together.
constexpr std::uint64_t kProvedDecodedBytes = std::uint64_t{512} << 20;

class MapProver {
 public:
  MapProver(const TargetState& state, const Checkpoint& made, Progress* progress)
      : state_(state), made_(made), progress_(progress) {}

  Result<MapProof> run() {
    out_.tensors.assign(made_.tensor_count(), ProvedTensor::kNotMade);
    for (std::size_t i = 0; i < state_.tensors.size(); ++i) {
      if (auto at = made_.find(state_.tensors[i].fqn))
        pairs_.emplace_back(i, *at);
      else
        out_.unexpected_results.push_back(state_.tensors[i].fqn);
    }
    Pool<ThreadReader> readers([&] {
      return std::make_unique<ThreadReader>(
          ThreadReader{PartReader(state_, kProvedDecodedBytes / worker_count()), {}, {}});
    });
    SHW_CHECK(parallel_for(pairs_.size(), [&](std::size_t i) -> Status {
      if (is_cancelled(progress_)) return cancelled_error();
      auto reader = readers.take();
      const auto proved = prove(pairs_[i].first, pairs_[i].second, *reader);
      if (!proved && proved.error().kind == ErrorKind::kCancelled)
        return tl::unexpected<Error>(proved.error());
      out_.tensors[index_of(pairs_[i].second)] = proved.value_or(ProvedTensor::kDiffers);
      return {};
    }));
    return std::move(out_);
  }

 private:
  // One for each thread: the memory of both sides' blocks is reused.
  struct ThreadReader {
    PartReader parts;
    Bytes wanted, found;
  };

  Result<ProvedTensor> prove(std::size_t entry, TensorId at, ThreadReader& reader) {
    SHW_TRY(const TargetTensor tensor, copy_of_entry(state_, entry));
    if (volume(tensor.shape) == 0 && same(tensor.shape, made_.shape(at)))
      return tensor.dtype == made_.dtype(at) ? ProvedTensor::kEqual : ProvedTensor::kDiffers;
    const auto there = pieces_of(made_, at);
    if (!there || tensor.shape != there->shape) return ProvedTensor::kNotMade;
    if (tensor.dtype != there->dtype) return ProvedTensor::kDiffers;
    SHW_TRY(const ProvedTensor proved, compare(tensor, tensor.dtype, *there, reader));
    const Dtype saved = dtype_before_lossless_cast(tensor);
    if (proved != ProvedTensor::kDiffers || saved == tensor.dtype) return proved;
    const auto rounded = pieces_of(made_, at, saved);
    if (!rounded) return proved;
    SHW_TRY(const ProvedTensor once_more, compare(tensor, saved, *rounded, reader));
    return once_more == ProvedTensor::kEqual ? ProvedTensor::kEqualRounded : proved;
  }
  // The dtype of the saved elements, if the tensor's dtype represents all its numbers.
  static Dtype dtype_before_lossless_cast(const TargetTensor& tensor) {
    for (const Part& part : tensor.parts) {
      const bool is_cast = !part.is_padding() && part.saved != tensor.dtype;
      if (is_cast && can_cast(part.saved, tensor.dtype) &&
          keeps_every_value(tensor.dtype, part.saved))
        return part.saved;
    }
    return tensor.dtype;
  }

  // Compares the tensor with `there` as elements of `dtype`.
  Result<ProvedTensor> compare(const TargetTensor& tensor, Dtype dtype, const PiecedTensor& there,
                               ThreadReader& reader) {
    if (tensor.dtype != dtype && !can_cast(tensor.dtype, dtype)) return ProvedTensor::kDiffers;
    bool pads_differ = false;
    std::int64_t compared = 0;
    for (const Part& part : tensor.parts) {
      SHW_TRY(const bool is_equal, compare_part(part, tensor.dtype, there, reader));
      if (!is_equal && !part.is_padding()) return ProvedTensor::kDiffers;
      pads_differ |= !is_equal;
      compared += volume(part.box.sizes).value_or(0);
    }
    if (compared != volume(tensor.shape)) return ProvedTensor::kNotMade;
    return pads_differ ? ProvedTensor::kEqualButPads : ProvedTensor::kEqual;
  }

  Result<bool> compare_part(const Part& part, Dtype dtype, const PiecedTensor& there,
                            ThreadReader& reader) {
    const std::int64_t most = kProvedBlockBytes / static_cast<std::int64_t>(size_of(dtype));
    Blocks blocks{part.box.sizes, block_sizes(part.box.sizes, most, {})};
    auto& [parts, wanted, found] = reader;
    while (blocks.next()) {
      if (is_cancelled(progress_)) return cancelled_error();
      Box box = blocks.block;
      for (std::size_t d = 0; d < box.offsets.size(); ++d) box.offsets[d] += part.box.offsets[d];
      SHW_CHECK(parts.read(part, box, wanted));
      if (dtype != there.dtype) {
        SHW_TRY(wanted, cast_elements(dtype, wanted, there.dtype));
      }
      if (!there.read(box, found) || !same_bytes(wanted, found)) return false;
      if (progress_ != nullptr) progress_->add(found.size());
    }
    return true;
  }

  const TargetState& state_;
  const Checkpoint& made_;
  Progress* progress_;
  std::vector<std::pair<std::size_t, TensorId>> pairs_;
  MapProof out_;
};

}  // namespace

Result<MapProof> prove_map(const ModelMap& map, MapDirection way,
                           const std::shared_ptr<const Checkpoint>& source, const Checkpoint& made,
                           Progress* progress) {
  SHW_TRY(BoundMap bound, bind_map(map, way, tensor_names_and_shapes(*source), {}));
  bound.left_out.insert(bound.left_out.end(), bound.without_row.begin(), bound.without_row.end());
  std::vector<std::string> objects;
  for (const NonTensorEntry& object : source->objects()) objects.push_back(object.fqn);
  SHW_TRY(const TargetState state,
          apply_steps(target_state_of(source), steps_of(bound, objects), progress));
  if (progress != nullptr) progress->begin(Phase::kVerifying, made.tensor_bytes(), true);
  return MapProver(state, made, progress).run();
}

}  // namespace shw
