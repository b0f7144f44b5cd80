#include "core/facts/check_input.h"

#include <algorithm>

namespace shw {

std::int64_t ranks_that_wrote(const Checkpoint& checkpoint) {
  std::int64_t ranks = 0;
  for (const FileRow& file : checkpoint.files()) {
    if (file.rank && file.referenced) ranks = std::max<std::int64_t>(ranks, *file.rank + 1);
  }
  return ranks;
}

}  // namespace shw
