#include "core/formats/deepspeed/deepspeed_formats.h"

#include "core/formats/common/record_reader.h"
#include "core/formats/deepspeed/zero_names.h"

namespace shw {

constexpr Format kZeroFormat = {
    .name = "deepspeed-zero",
    .title = "DeepSpeed ZeRO",
    .codec = &kZipRecordCodec,
    .traits = {.writer_of_file = rank_of_zero_file},
};
constexpr Format kUniversalFormat = {
    .name = "deepspeed-universal",
    .title = "DeepSpeed universal",
    .codec = &kZipRecordCodec,
    .traits = {.has_one_piece_per_tensor = true},
};

}  // namespace shw
