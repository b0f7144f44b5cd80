// Quantised weights and the tensors that have to stand beside them, scheme by scheme.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/names/quant_config.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class CompanionNeed {
  kAlways,    // without it the weight says nothing
  kAsOthers,  // where nearly all other weights have it
  kOfBytes,   // where the first companion is itself quantised, to bytes
};

// One tensor beside a quantised weight. `endings` are alternatives, parted by '|'.
struct QuantCompanion {
  std::string_view endings;
  CompanionNeed need = CompanionNeed::kAlways;
  bool is_scale = false;  // numbers that elements are multiplied with
  // The shape that it has to have; nothing where the config does not say it. Null: any.
  std::optional<Extents> (*shape)(const QuantConfig& config, ExtentsView weight,
                                  ExtentsView companion) = nullptr;
};

struct QuantScheme {
  std::string_view title;    // "FP8"
  std::string_view methods;  // of config.json, parted by '|'
  std::string_view weight;   // how the name of a quantised weight ends: ".qweight"
  bool (*is_weight)(Dtype dtype, ExtentsView shape);
  std::span<const QuantCompanion> companions;
  std::string_view marker = {};  // a companion that tells the scheme; empty: the dtype does
};

struct QuantPair {
  TensorId weight{};
  std::string stem;                             // what companions' endings stand behind
  std::vector<std::optional<TensorId>> beside;  // one per companion of the scheme
  std::vector<std::string_view> ending;         // under which it was found
};

// The weights of a scheme that is in use, and companions that have no such weight.
struct QuantFamily {
  const QuantScheme* scheme = nullptr;
  bool is_said = false;  // config.json names the method
  std::vector<QuantPair> pairs;
  struct Orphan {
    TensorId companion{};
    std::string weight;                   // the name that it would have
    std::optional<TensorId> unquantised;  // it is there, as a float
  };
  std::vector<Orphan> orphans;
};

std::vector<QuantFamily> quant_families(const CheckInput& input,
                                        const std::optional<QuantConfig>& config);

std::vector<std::string_view> alternatives_of(std::string_view text);

}  // namespace shw
