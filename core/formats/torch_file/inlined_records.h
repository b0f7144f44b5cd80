// Bytes of a torch.save file that no tensor of the checkpoint views but that belong to entries: a
// tensor in a tuple (a single value for torch), a sparse or a quantised tensor.
#pragma once

#include <map>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/common/carried_storages.h"
#include "core/formats/common/item_header.h"
#include "core/model/checkpoint.h"

namespace shw {

// Verifies the checksums of these records, each once. Parses the pickle again, which costs little
// compared with the data.
Status check_inlined_records(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                             Progress* progress);

// Values, with their storages, of entries that plain opcodes cannot represent.
Status carry_inlined_records(const Checkpoint& checkpoint,
                             std::map<std::size_t, Result<CarriedValue>>& values,
                             Progress* progress);

}  // namespace shw
