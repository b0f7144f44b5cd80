// Messages between ranks that verify together.
#pragma once

#include <optional>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/repair/proof/mismatch.h"
#include "core/repair/proof/verify_report.h"

namespace shw {

// An error if the chunk could not be compared.
using ComparedChunk = Result<ComparedTile>;

// The outer error is about decoding the message.
Bytes packed(const ComparedChunk& found);
Result<ComparedChunk> decode_compared_chunk(BytesView words);
Bytes packed(const Result<std::optional<Error>>& object);
Result<Result<std::optional<Error>>> decode_compared_object(BytesView words);
Bytes packed(const VerifyReport& report);
Result<VerifyReport> decode_verify_report(BytesView words);

}  // namespace shw
