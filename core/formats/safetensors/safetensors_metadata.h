// Entries of __metadata__ in the headers of a checkpoint's files, and what they say of tensors.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// What diffusers writes beside a LoRA: the config of its PEFT adapters, with their lora_alpha.
inline constexpr std::string_view kLoraMetadata = "lora_adapter_metadata";

// Of every .safetensors file that the checkpoint was opened from and that can be read.
void each_metadata(const Checkpoint& checkpoint,
                   const std::function<void(const std::string& file, const std::string& key,
                                            const std::string& text)>& take);

// True for what the format itself keeps there: it is made anew for every file.
bool is_metadata_of_format(std::string_view key);

// torchao writes one entry for each parameter ("a.weight") that it packs into several tensors
// ("a._weight_qdata"). Those of the checkpoint; empty for other entries.
std::vector<std::string> packed_parts(const Checkpoint& checkpoint, const std::string& key,
                                      const std::string& text);

// True if entries of torchao say how parameters are packed that are not packed any more.
bool has_stale_packing(const Checkpoint& checkpoint);

// True for an entry that holds only while no tensor changes: a hash of their bytes, or one that
// names tensors and says how they are packed.
bool describes_tensors(const Checkpoint& checkpoint, const std::string& key,
                       const std::string& text);

}  // namespace shw
