#include "core/formats/torch_file/torch_file_formats.h"

#include "core/formats/torch_file/torch_file_writer.h"
#include "core/formats/torch_file/torch_record.h"

namespace shw {

constexpr Format kTorchFileFormat = {
    "torch",           "torch.save file", &kTorchRecordCodec,
    &kTorchFileWriter, Rewrite::kNone,    {.has_one_piece_per_tensor = true},
};

}  // namespace shw
