#include "core/formats/deepspeed/deepspeed_formats.h"

#include "core/formats/common/record_reader.h"
#include "core/formats/deepspeed/zero_names.h"

namespace shw {

constexpr Format kZeroFormat = {
    .name = "deepspeed-zero",
    .title = "DeepSpeed ZeRO",
    .codec = &kZipRecordCodec,
    .traits = {.writer_of_file = zero_writer},
};
constexpr Format kUniversalFormat = {
    .name = "deepspeed-universal",
    .title = "DeepSpeed universal",
    .codec = &kZipRecordCodec,
    .traits = {.one_piece = true},
};

}  // namespace shw
