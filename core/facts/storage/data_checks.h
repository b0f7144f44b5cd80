// Every item read to its end: whether its bytes are those that were written, and what they are.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/base/team.h"
#include "core/facts/values/counted_chunks.h"
#include "core/formats/items.h"
#include "core/model/checkpoint.h"

namespace shw {

struct DataChecks {
  ItemDataChecks chunks;
  std::vector<Result<DataCheck>> objects;
  std::vector<Result<DataCheck>> files;  // one a file, empty where the format has no such checksum
};
// `headers`, one a chunk, where they have been read. A team reads each item once. An error only
// where somebody stopped it, or the team's own. `counted`, where it is not null and there is no
// team: what statistics are made of comes there, from the same pass.
Result<DataChecks> read_all_data(const Checkpoint& checkpoint, const ItemHeaders& headers,
                                 Progress* progress, Team* team, CountedChunks* counted = nullptr);

}  // namespace shw
