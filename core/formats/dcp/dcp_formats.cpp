#include "core/formats/dcp/dcp_formats.h"

#include "core/formats/common/codecs.h"
#include "core/formats/dcp/dcp_format_writer.h"

namespace shw {
namespace {

std::string file_of_rank(std::uint32_t rank) {
  return distcp_name(rank, 0);
}

constexpr FormatTraits kOneIndex = {
    .has_index = true,
    .one_index_file = true,
    .index_file = kDcpMetadataName,
    .writer_of_file = rank_in_distcp_name,
    .data_suffix = kDcpDataSuffix,
    .records_every_item = true,
};

constexpr FormatTraits stock_traits() {
  FormatTraits traits = kOneIndex;
  traits.index_comes_last = true;
  traits.file_of_rank = file_of_rank;
  return traits;
}

// Format with one metadata file per rank. records_every_item is false because merging keeps only
// the lowest rank's chunk of equal ones: files also contain the other ranks' copies.
constexpr FormatTraits rank_local_traits() {
  FormatTraits traits = kOneIndex;
  traits.one_index_file = traits.records_every_item = false;
  traits.index_file = "__0.metadata";
  traits.index_of_rank = rank_local_name;
  return traits;
}

// Tensors wrapped by a subclass or inside a pickled dict are in an item, between bytes that no
// chunk refers to. A flattened state's item covers several chunks.
constexpr FormatTraits kInsideItems = {
    .has_index = true,
    .index_file = kDcpMetadataName,
    .writer_of_file = rank_in_distcp_name,
    .data_suffix = kDcpDataSuffix,
};

}  // namespace

constexpr Format kDcpWrappedFormat = {
    .name = "dcp",
    .title = "DCP with tensor subclasses",
    .codec = &kTorchZipCodec,
    .traits = kInsideItems,
};
constexpr Format kDcpPickledFormat = {
    .name = "dcp",
    .title = "DCP with pickled dicts",
    .codec = &kTorchZipCodec,
    .traits = kInsideItems,
};
constexpr Format kDcpFormat = {
    "dcp", "DCP", &kTorchZipCodec, &kDcpWriter, Rewrite::kIndex, stock_traits(),
};
constexpr Format kDcpRankLocalFormat = {
    "dcp-rank-local", "DCP, one metadata file per rank",
    &kTorchZipCodec,  &kDcpWriter,
    Rewrite::kIndex,  rank_local_traits(),
};
constexpr Format kMegatronFormat = {
    "megatron-dist", "Megatron torch_dist", &kTorchZipCodec,
    &kDcpWriter,     Rewrite::kIndex,       kOneIndex,
};
constexpr Format kMegatronFlattenedFormat = {
    .name = "megatron-dist",
    .title = "Megatron torch_dist with flattened states",
    .codec = &kTorchZipCodec,
    .traits = kInsideItems,
};

}  // namespace shw
