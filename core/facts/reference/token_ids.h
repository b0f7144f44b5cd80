// Token ids that files beside the weights name (config.json, generation_config.json,
// tokenizer.json, added_tokens.json), against the rows of the embedding. None of the files is
// trusted; one that cannot be read names nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

struct NamedTokenId {
  std::string file;  // "generation_config.json"
  std::string name;  // "eos_token_id", or an added token: "<pad>"
  std::int64_t id = 0;
};

struct TokenIdsBeyond {
  TensorId embedding{};
  std::int64_t rows = 0;
  std::vector<NamedTokenId> special = {};  // of the two configs: beginning, end, padding
  std::vector<NamedTokenId> added = {};    // of a tokenizer
};

// The ids that no row of the largest input embedding has. Tokens of images, audio and video are
// passed over: models replace them before they look up a row, and Gemma 3 without vision lists one.
// nullopt without such ids, or where no embedding of its own name is there.
std::optional<TokenIdsBeyond> token_ids_beyond(const Checkpoint& checkpoint,
                                               const Progress* progress);

}  // namespace shw
