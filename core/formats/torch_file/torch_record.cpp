#include "core/formats/torch_file/torch_record.h"

#include "core/formats/common/record_reader.h"
#include "core/formats/torch_file/inlined_records.h"

namespace shw {
namespace {

constexpr ItemReader kRecordReader{open_record, check_record, check_inlined_records, sums_of_record,
                                   carry_inlined_records};
constexpr ItemReader kBigRecordReader{open_big_record, check_record, check_inlined_records,
                                      sums_of_record, carry_inlined_records};

}  // namespace

constexpr Codec kTorchRecordCodec{"torch-record", &kRecordReader, true};
constexpr Codec kTorchRecordBigCodec{"torch-record-big-endian", &kBigRecordReader, true};

}  // namespace shw
