#include "core/model/checkpoint.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/checked.h"

namespace shw {

std::string_view name(Format format) {
  switch (format) {
    case Format::kDcp:
      return "dcp";
    case Format::kDcpRankLocal:
      return "dcp-rank-local";
    case Format::kHfSharded:
      return "hf-sharded";
    case Format::kMegatronDist:
      return "megatron-dist";
    case Format::kSafetensors:
      return "safetensors";
    case Format::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view title(Format format) {
  switch (format) {
    case Format::kDcp:
      return "DCP";
    case Format::kDcpRankLocal:
      return "DCP, one metadata a rank";
    case Format::kHfSharded:
      return "Hugging Face sharded safetensors";
    case Format::kMegatronDist:
      return "Megatron torch_dist";
    case Format::kSafetensors:
      return "safetensors";
    case Format::kUnknown:
      break;
  }
  return "unknown format";
}

TensorId tensor_of(const Diagnosis& diagnosis) {
  return std::visit([](const auto& kind) { return kind.tensor; }, diagnosis);
}

std::span<const PathPart> Checkpoint::path(TensorId tensor) const {
  return index_of(tensor) < tensor_path_.size()
             ? std::span<const PathPart>(tensor_path_[index_of(tensor)])
             : std::span<const PathPart>{};
}

std::span<const PathPart> Checkpoint::object_path(std::size_t object) const {
  return object < object_path_.size() ? std::span<const PathPart>(object_path_[object])
                                      : std::span<const PathPart>{};
}

std::optional<TensorId> Checkpoint::find(std::string_view fqn) const {
  auto found = std::lower_bound(
      by_fqn_.begin(), by_fqn_.end(), fqn,
      [&](std::uint32_t tensor, std::string_view text) { return tensor_fqn_[tensor] < text; });
  if (found == by_fqn_.end() || tensor_fqn_[*found] != fqn) return std::nullopt;
  return TensorId{*found};
}

TensorId Checkpoint::tensor_of(ChunkId chunk) const {
  auto after =
      std::upper_bound(first_chunk_.begin(), first_chunk_.end(), static_cast<std::uint32_t>(chunk));
  return TensorId{static_cast<std::uint32_t>(after - first_chunk_.begin() - 1)};
}

std::optional<ItemPlace> Checkpoint::item(ChunkId chunk) const {
  std::size_t i = index_of(chunk);
  if (chunk_file_[i] == FileId::kNone) return std::nullopt;
  return ItemPlace{chunk_file_[i], chunk_offset_[i], chunk_length_[i]};
}

std::optional<std::uint32_t> Checkpoint::writer(ChunkId chunk) const {
  FileId file = chunk_file_[index_of(chunk)];
  return file == FileId::kNone ? std::nullopt : files_[index_of(file)].rank;
}

bool Checkpoint::writers_are_owners(TensorId tensor) const {
  const auto& reordered = provenance_.reordered;
  return !std::binary_search(reordered.begin(), reordered.end(), tensor_fqn_[index_of(tensor)]);
}

std::span<const std::string> Checkpoint::transforms(ChunkId chunk) const {
  if (chunk_transform_.empty()) return {};
  return transforms_[chunk_transform_[index_of(chunk)]];
}

std::uint32_t Checkpoint::rank_count() const {
  std::set<std::uint32_t> ranks;
  for (const FileRow& file : files_) {
    if (file.rank) ranks.insert(*file.rank);
  }
  return static_cast<std::uint32_t>(ranks.size());
}

std::uint64_t Checkpoint::tensor_bytes() const {
  std::uint64_t total = 0;
  for (std::uint32_t t = 0; t < tensor_count(); ++t) {
    std::uint64_t element = size_of(tensor_dtype_[t]);
    for (ChunkId chunk : chunks(TensorId{t})) {
      auto elements = volume(sizes(chunk));
      auto bytes =
          elements ? checked_mul(static_cast<std::uint64_t>(*elements), element) : std::nullopt;
      auto sum = bytes ? checked_add(total, *bytes) : std::nullopt;
      if (!sum) return std::numeric_limits<std::uint64_t>::max();
      total = *sum;
    }
  }
  return total;
}

}  // namespace shw
