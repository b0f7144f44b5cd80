// A format with items, files and records like DCP's, without its other properties.
#pragma once

#include "core/formats/common/codecs.h"
#include "core/formats/dcp/dcp_formats.h"

namespace shw::test {

inline constexpr Format kUnnamedFormat = {
    .name = "unknown",
    .title = "unknown format",
    .codec = &kTorchZipCodec,
    .traits = {.has_index = true,
               .index_file = kDcpMetadataName,
               .writer_of_file = rank_in_distcp_name,
               .data_suffix = ".distcp",
               .records_every_item = true},
};

}  // namespace shw::test
