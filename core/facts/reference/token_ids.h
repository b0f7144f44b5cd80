// Compares token ids in files next to the weights (config.json, generation_config.json,
// tokenizer.json, added_tokens.json) with the rows of the embedding. The files are not trusted;
// unreadable ones are ignored.
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
  std::vector<NamedTokenId> special = {};  // from both configs: begin, end, padding
  std::vector<NamedTokenId> added = {};    // from a tokenizer
};

// Ids beyond the rows of the largest input embedding. Tokens of images, audio and video are
// ignored: models replace them before the look-up, and Gemma 3 without vision lists one. nullopt if
// there are no such ids, or no embedding with a known name.
std::optional<TokenIdsBeyond> token_ids_beyond_embedding(const Checkpoint& checkpoint,
                                                         const Progress* progress);

}  // namespace shw
