// The quantisation schemes that a checkpoint uses: each weight with its companions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_schemes.h"
#include "core/model/checkpoint.h"

namespace shw {

struct QuantPair {
  TensorId weight{};
  std::string stem;                             // the part of the name before the endings
  std::vector<std::optional<TensorId>> beside;  // one per companion of the scheme
  std::vector<std::string_view> ending;         // ending under which it was found
};

// The weights of a scheme in use, and companions without a weight.
struct QuantFamily {
  const QuantScheme* scheme = nullptr;
  bool is_said = false;  // named in config.json
  std::vector<QuantPair> pairs;
  std::vector<std::optional<Dtype>> usual_dtypes;  // per companion: of three of four weights
  struct Orphan {
    TensorId companion{};
    std::string weight;                   // name that the missing weight would have
    std::optional<TensorId> unquantised;  // the weight exists, but as a float
  };
  std::vector<Orphan> orphans;
};

// True if the config names the method of other schemes, although names and dtypes tell how the
// family is packed: no loader of that method finds these tensors.
bool is_named_for_other_method(const QuantFamily& family, std::string_view method);

// True for codes in the bytes of floats (bnb_4bit_quant_storage), which are not numbers.
bool stores_codes_as_floats(const Checkpoint& checkpoint, TensorId tensor);

std::vector<QuantFamily> quant_families(const CheckInput& input,
                                        const std::optional<QuantConfig>& config);

}  // namespace shw
