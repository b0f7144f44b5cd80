// Files of a Hugging Face folder that must be adapted to changed weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/io/source.h"

namespace shw {

// Changes by an adapter to the model that config.json describes.
struct ModelChanges {
  std::optional<std::pair<std::int64_t, std::int64_t>> vocabulary;  // size: before, after
  std::string head = {};    // part of the class name of a new head: "SequenceClassification"
  std::int64_t labels = 0;  // number of labels of the head; 0: unchanged
};
// config.json with these changes; null if it cannot be read or does not change.
std::shared_ptr<const ByteSource> config_with_changes(const Directory& folder,
                                                      const ModelChanges& changes);
// config.json with this key set to a JSON value; null if there is no readable config.
std::shared_ptr<const ByteSource> config_file_with_value(const Directory& folder,
                                                         const std::string& key,
                                                         const std::string& value);
// True if config.json names a class that ends in ForCausalLM.
bool is_causal_model(const Directory& folder);
// An in-memory file with this text.
std::shared_ptr<const ByteSource> text_file(const std::string& name, const std::string& text);
// The tokenizer files in the folder.
std::vector<std::shared_ptr<const ByteSource>> tokenizer_files(const Directory& folder);

}  // namespace shw
