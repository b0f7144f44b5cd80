// Parts of the rule about quantised weights and their companions (quantised_pairs.cpp).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/facts.h"
#include "core/facts/names/ignored_modules.h"
#include "core/facts/names/quant_families.h"
#include "core/facts/values/quant_forms.h"
#include "core/model/finding.h"

namespace shw {

struct QuantCheck {
  const Facts& facts;
  std::optional<QuantConfig> config;
  std::vector<Finding>& findings;
  TensorClasses classes = {};                   // of torchao's weights
  std::set<std::string> of_classes = {};        // the tensors that they list
  IgnoredModules ignored = IgnoredModules({});  // of `config`

  std::string fqn(TensorId tensor) const { return std::string(facts.checkpoint.fqn(tensor)); }
  void report(std::string cause, std::vector<std::string> subjects,
              std::vector<std::string> details);
};

// "weight_scale" for ".weight_scale" and "_scale".
std::string ending_without_separator(std::string_view ending);
std::string any_of_endings(const QuantCompanion& companion);

// Weights that are quantised although the config excludes them (quantised_exclusions.cpp).
void report_unconverted(QuantCheck& check, const QuantFamily& family);
// Weights that are plain floats although the config does not exclude them.
void report_unquantised(QuantCheck& check, const std::vector<QuantFamily>& families);
// Reports bits or a group size of the config that no weight has, if all weights agree on other ones
// (quantised_settings.cpp). True if it does: then every single shape differs for that reason.
bool report_wrong_settings(QuantCheck& check, const QuantFamily& family);
// Scales that are 0, NaN or infinite; with --data.
void report_values(QuantCheck& check, const QuantFamily& family, std::size_t k);
// Group numbers of GPTQ (g_idx) beyond the rows of scales. Read without --data if they are small.
void report_group_order(QuantCheck& check, const QuantFamily& family, std::size_t k);
// Weights whose parts contradict each other or their config, and that `from` on no finding names.
void report_unfit(QuantCheck& check, const QuantFamily& family, std::size_t from);
// Tensors that torchao's classes list and that are not there, or not of a form that the class has,
// of weights that no finding names.
void report_lost_parts(QuantCheck& check, const std::vector<QuantFamily>& families);
// Router biases in 16 bits next to others in 32.
void report_router_bias(QuantCheck& check);
// Reports layers that have only one of the scales of the key-value cache.
void report_cache_scales(QuantCheck& check);
// A quantiser's own settings (NAME.weight_quantizer.*) next to weights that it has packed.
void report_quantiser_state(QuantCheck& check, const QuantFamily& family);

}  // namespace shw
