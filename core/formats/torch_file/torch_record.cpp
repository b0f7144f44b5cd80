#include "core/formats/torch_file/torch_record.h"

#include "core/formats/common/record_reader.h"
#include "core/formats/torch_file/inlined_records.h"

namespace shw {
namespace {

constexpr ItemReader kRecordReader{open_record, check_record, check_inlined_records,
                                   record_checksums, carry_inlined_records};
constexpr ItemReader kBigRecordReader{open_big_endian_record, check_record, check_inlined_records,
                                      record_checksums, carry_inlined_records};

}  // namespace

constexpr Codec kTorchRecordCodec{"torch-record", &kRecordReader, true};
constexpr Codec kTorchRecordBigCodec{"torch-record-big-endian", &kBigRecordReader, true};

}  // namespace shw
