// Entries of __metadata__ in the headers of a checkpoint's files, and their references to tensors.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/common/tensor_class.h"
#include "core/model/checkpoint.h"

namespace shw {

// The config of PEFT adapters, with lora_alpha, that diffusers writes for a LoRA.
inline constexpr std::string_view kLoraMetadata = "lora_adapter_metadata";

// Visits every readable .safetensors file of the checkpoint.
void for_each_metadata_entry(
    const Checkpoint& checkpoint,
    const std::function<void(const std::string& file, const std::string& key,
                             const std::string& text)>& take);

// True for entries of the format itself, which are rewritten for every file.
bool is_metadata_of_format(std::string_view key);

// torchao writes one entry for each parameter ("a.weight") that it packs into several tensors
// ("a._weight_qdata"). Returns those tensors of the checkpoint; empty for other entries.
std::vector<std::string> packed_tensor_parts(const Checkpoint& checkpoint, const std::string& key,
                                             const std::string& text);

// The classes that torchao's entries name.
std::vector<TensorClass> classes_in_metadata(const Checkpoint& checkpoint);

// True if torchao's entries describe the packing of parameters that are no longer packed.
bool has_stale_packed_metadata(const Checkpoint& checkpoint);

// True for an entry that becomes invalid when a tensor changes: a hash of their bytes, or one that
// names tensors and describes their packing.
bool is_tensor_specific_metadata(const Checkpoint& checkpoint, const std::string& key,
                                 const std::string& text);

}  // namespace shw
