// Reports tensors of an adapter that do not fit its adapter_config.json, and values there that PEFT
// cannot use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/facts/facts.h"
#include "core/facts/names/adapter_config.h"
#include "core/model/finding.h"

namespace shw {

// "adapter_model.safetensors" if it was opened.
std::optional<std::string> opened_adapter_file(const Checkpoint& checkpoint);

// A warning that adapter_config.json and the weights contradict each other.
Finding adapter_contradiction(std::string cause, std::vector<std::string> subjects);

// Weights of layers that are neither matrices of LoRA nor of a module that PEFT saves whole.
void report_base_weights(const Facts& facts, const AdapterConfig& config,
                         std::vector<Finding>& findings);

// Values of adapter_config.json that PEFT stops at, and a prompt of another length.
void report_unusable_config(const Facts& facts, const AdapterConfig& config,
                            std::vector<Finding>& findings);

// adapter_config.json in the folder of a whole model, which was opened.
void report_config_next_to_model(const Facts& facts, const AdapterConfig& config,
                                 std::vector<Finding>& findings);

// A file of LoRA without one matrix of LoRA.
void report_no_matrices(const Facts& facts, const AdapterConfig& config,
                        std::vector<Finding>& findings);

// Matrices of LoRA under names that PEFT does not have, such as those of all experts in one tensor.
void report_unread_matrices(const Facts& facts, const AdapterConfig& config,
                            std::vector<Finding>& findings);

// Reports tensor names that contain the adapter's name, as in "lora_A.default_0.weight", in a file
// without adapter_config.json. PEFT adds that name on loading, so it must not be in the file.
void report_adapter_name_in_keys(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
