// Reads every item completely and verifies checksums.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/base/team.h"
#include "core/facts/values/counted_chunks.h"
#include "core/formats/items/items.h"
#include "core/model/checkpoint.h"

namespace shw {

struct DataChecks {
  ItemDataChecks chunks;
  std::vector<Result<DataCheck>> objects;
  std::vector<Result<DataCheck>> files;  // one per file; empty if the format has no file checksums
};
// `headers`: one per chunk if already read. The ranks of a team read each item once. Errors:
// cancellation, or a failure of the team. If `counted` is not null and there is no team, it
// receives statistics from the same pass.
Result<DataChecks> read_all_data(const Checkpoint& checkpoint, const ItemHeaders& headers,
                                 Progress* progress, Team* team, CountedChunks* counted = nullptr);

}  // namespace shw
