// Reports parameters of PEFT's adapters other than LoRA whose names do not begin as PEFT asks.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/facts/names/adapter_config.h"
#include "core/model/finding.h"

namespace shw {

// Names that lack "base_model.", or have another part before it.
void report_wrong_roots(const Facts& facts, const AdapterConfig& config,
                        std::vector<Finding>& findings);

}  // namespace shw
