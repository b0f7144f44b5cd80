// Files beside the weights of a Hugging Face folder, as they have to be for changed weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/io/source.h"

namespace shw {

// config.json with another vocab_size; null where it does not say the one before.
std::shared_ptr<const ByteSource> config_with_vocabulary(const Directory& folder,
                                                         std::int64_t before, std::int64_t now);
// config.json with this key, whose value is JSON; null where there is no config that can be read.
std::shared_ptr<const ByteSource> config_with(const Directory& folder, const std::string& key,
                                              const std::string& value);
// True if config.json names a class that ends in ForCausalLM.
bool is_causal_model(const Directory& folder);
// A file of this text.
std::shared_ptr<const ByteSource> text_file(const std::string& name, const std::string& text);
// The tokenizer's files in the folder.
std::vector<std::shared_ptr<const ByteSource>> tokenizer_files(const Directory& folder);

}  // namespace shw
