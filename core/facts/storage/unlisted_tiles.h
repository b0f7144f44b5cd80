// Storage records of tiles that the tensor's own list lacks: the record says where in the tensor
// the tile begins, the item itself how large it is. Which of them are what the listed tiles leave
// open.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

struct UnlistedTiles {
  std::vector<Relisted> tensors;  // whose tiles are all there again with these, each once
  std::set<TensorId> misplaced;   // of those: that list tiles without a record in their place
  std::set<std::size_t> placed;   // index in strays() of all that `tensors` are made of
  std::map<std::size_t, std::string> why_not;  // of other records of a tensor that is there
};

// Nothing where no header was read.
UnlistedTiles find_unlisted_tiles(const CheckInput& input);

}  // namespace shw
