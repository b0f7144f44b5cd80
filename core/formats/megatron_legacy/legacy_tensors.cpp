#include "core/formats/megatron_legacy/legacy_tensors.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/how_read_finding.h"
#include "core/model/state_path.h"

namespace shw {

void LegacyTensors::count_layers() {
  for (const LegacyRankFile& file : files_) {
    if (!file.is_model) continue;
    layers_.add_stage(file.place.pipeline);
    for (const TorchFileTensor& tensor : file.tensors) {
      const auto chunk = tensor.path.empty() ? std::nullopt : model_chunk(tensor.path.front());
      if (!chunk) continue;
      const std::string name = dotted_path(std::span(tensor.path).subspan(1));
      layers_.add(name, *chunk, file.place.pipeline);
      model_chunks_ = std::max(model_chunks_, *chunk + 1);
      if (const auto expert = local_expert(name))
        experts_here_ = std::max(experts_here_, expert->number + 1);
    }
  }
  layers_.finish(model_chunks_, sizes_.pipeline);
}

std::string LegacyTensors::model_name(const TorchFileTensor& tensor, const LegacyRankFile& file,
                                      std::uint32_t chunk) const {
  std::string name = layers_.whole_name(dotted_path(std::span(tensor.path).subspan(1)), chunk,
                                        file.place.pipeline);
  const auto expert = local_expert(name);
  if (expert && sizes_.expert > 1)
    name.replace(expert->at, expert->length,
                 std::to_string(expert->number + file.place.expert * experts_here_));
  return "model." + name;
}

void LegacyTensors::gather(std::size_t index) {
  LegacyRankFile& file = files_[index];
  for (TorchFileTensor& tensor : file.tensors) {
    const auto chunk =
        tensor.path.empty() || !file.is_model ? std::nullopt : model_chunk(tensor.path.front());
    // Tensors outside of the model belong to the rank alone.
    std::string fqn =
        chunk ? model_name(tensor, file, *chunk) : file.prefix + dotted_path(tensor.path);
    auto [known, is_new] = pieces_.try_emplace(std::move(fqn));
    if (is_new) order_.push_back(known->first);
    known->second.push_back({index, &tensor});
  }
}

void LegacyTensors::finish() {
  count_layers();
  for (std::size_t i = 0; i < files_.size(); ++i) gather(i);
  for (const std::string& fqn : order_) {
    Pieces& pieces = pieces_.at(fqn);
    if (fqn.starts_with("model."))
      add_model_tensor(fqn, pieces);
    else
      add_piece_as_tensor(fqn, pieces.front());
  }
  note_rules();
  report_unjoined_states();
}

void LegacyTensors::add_model_tensor(const std::string& fqn, Pieces& pieces) {
  if (add_joined(fqn, pieces)) return;
  unknown_.push_back(fqn);
  for (Piece& piece : pieces) add_piece_as_tensor(files_[piece.file].name + "." + fqn, piece);
}

bool LegacyTensors::add_joined(const std::string& fqn, const Pieces& pieces) {
  const bool is_expert = fqn.find(".experts.") != std::string::npos;
  // Experts may be split over another group of ranks than other layers.
  const std::uint32_t ranks =
      is_expert ? args_.expert_tensor.value_or(sizes_.tensor) : sizes_.tensor;
  if (ranks != sizes_.tensor && ranks != 1) return false;
  const TensorSplit cut = ranks == 1 ? TensorSplit::kReplicated : tensor_split(fqn, args_.is_gated);
  if (cut == TensorSplit::kUnknown) return false;
  const TorchFileTensor& first = *pieces.front().tensor;
  const bool are_alike = std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.tensor->sizes == first.sizes && piece.tensor->dtype == first.dtype;
  });
  const auto whole_of = split_part_of_rank(cut, first.sizes, 0, ranks);
  if (!are_alike || !whole_of) return false;
  builder_.add_tensor(fqn, first.dtype, whole_of->shape);
  chunks_.begin_tensor();
  for (const Piece& piece : pieces) {
    const LegacyRankFile& file = files_[piece.file];
    const auto part = split_part_of_rank(cut, first.sizes, file.place.tensor, ranks);
    // Relative to the rank's part.
    if (part) (void)chunks_.add({rank_of(file.place), file.file, *piece.tensor}, part->boxes);
  }
  ++joined_;
  return true;
}

void LegacyTensors::add_piece_as_tensor(const std::string& name, Piece& piece) {
  const LegacyRankFile& file = files_[piece.file];
  const Box box = whole(piece.tensor->sizes);
  builder_.add_tensor(name, piece.tensor->dtype, piece.tensor->sizes);
  chunks_.begin_tensor();
  (void)chunks_.add({rank_of(file.place), file.file, std::move(*piece.tensor)}, {box});
}

// Global rank: Megatron numbers ranks along tensor, expert and data parallelism before the
// pipeline, and the first rank of a data-parallel group saves.
std::uint32_t LegacyTensors::rank_of(const LegacyPlace& place) const {
  const std::uint64_t folders = std::uint64_t{sizes_.tensor} * sizes_.pipeline;
  const std::uint64_t world = args_.world.value_or(0);
  const std::uint64_t data =
      world >= folders && world % folders == 0 ? world / folders : std::uint64_t{sizes_.expert};
  return static_cast<std::uint32_t>(place.tensor + std::uint64_t{sizes_.tensor} * place.expert +
                                    std::uint64_t{sizes_.tensor} * data * place.pipeline);
}

void LegacyTensors::note_rules() {
  if (sizes_.tensor > 1 && joined_ != 0) {
    Finding finding = how_read_finding(
        files_.front().name,
        fmt::format("{} of {} tensor-parallel ranks were joined along Megatron's sharding axis, "
                    "chosen by tensor names: the files do not record it.",
                    plural(joined_, "tensor"), sizes_.tensor));
    finding.evidence = {{"joined", static_cast<std::int64_t>(joined_)},
                        {"tensor_parallel", static_cast<std::int64_t>(sizes_.tensor)}};
    builder_.add_finding(std::move(finding));
  }
  if (unknown_.empty()) return;
  Finding finding = how_read_finding(
      unknown_.front(),
      fmt::format(
          "{} {} not joined: the name does not show along which axis the ranks shard {}. Each "
          "rank's part is listed as a separate tensor ({}.NAME): {}.",
          plural(unknown_.size(), "tensor"), unknown_.size() == 1 ? "was" : "were",
          unknown_.size() == 1 ? "it" : "them", files_.front().name, short_list_text(unknown_)));
  finding.evidence = {{"count", static_cast<std::int64_t>(unknown_.size())}};
  builder_.add_finding(std::move(finding));
}

void LegacyTensors::report_unjoined_states() {
  const bool has_optimizer = std::any_of(order_.begin(), order_.end(), [](const std::string& fqn) {
    return fqn.starts_with("mp_rank_") && fqn.find("exp_avg") != std::string::npos;
  });
  if (!has_optimizer) return;
  Finding finding = how_read_finding(
      files_.front().name,
      "The optimizer's states are numbered or flat in this format, and no file records their "
      "parameters: each rank's states are listed separately, not joined.");
  builder_.add_finding(std::move(finding));
}

}  // namespace shw
