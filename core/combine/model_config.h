// Files beside the weights of a Hugging Face folder, as they have to be for changed weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/io/source.h"

namespace shw {

// What an adapter changes of the model that config.json describes.
struct ModelChanges {
  std::optional<std::pair<std::int64_t, std::int64_t>> vocabulary;  // its size: before, now
  std::string head = {};    // a new one: "SequenceClassification", of class names
  std::int64_t labels = 0;  // that the head tells apart; 0: as before
};
// config.json with these changes; null where it cannot be read or stays as it is.
std::shared_ptr<const ByteSource> config_with_changes(const Directory& folder,
                                                      const ModelChanges& changes);
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
