// The input for decoding a quantised weight (quant_forms.cpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_families.h"
#include "core/facts/values/decoded_weight.h"
#include "core/facts/values/quant_numbers.h"
#include "core/formats/common/tensor_class.h"
#include "core/tensor/cast.h"

namespace shw {

using QuantFloats = Result<std::vector<float>>;

struct QuantSource {
  std::shared_ptr<const Checkpoint> checkpoint;
  const QuantPair& pair;
  QuantSettings config;                   // of the weight's module
  bool is_said = false;                   // config.json names the scheme
  const TensorClass* of_class = nullptr;  // null if no file names the weight's class

  const Checkpoint& c() const { return *checkpoint; }
  ExtentsView weight() const { return c().shape(pair.weight); }
  std::optional<TensorId> companion(std::size_t k) const {
    return k < pair.beside.size() ? pair.beside[k] : std::nullopt;
  }
  DecodedWeight result(std::string fqn, Extents shape) const {
    DecodedWeight decoded{std::move(fqn), std::move(shape), 1, nullptr, {pair.weight}, nullptr};
    for (const auto& one : pair.beside)
      if (one) decoded.used.push_back(*one);
    return decoded;
  }
  // The weight is of a form that is not decoded.
  tl::unexpected<Error> unreadable_error(std::string why) const {
    return fail(ErrorKind::kUnsupported, std::move(why),
                Place{.file = {}, .tensor = std::string(c().fqn(pair.weight))});
  }
  // The weight and its companions contradict each other or their config: no loader reads them.
  tl::unexpected<Error> unfit(std::string why) const {
    return fail(ErrorKind::kDamaged, std::move(why),
                Place{.file = {}, .tensor = std::string(c().fqn(pair.weight))});
  }
  bool is_float(std::optional<TensorId> tensor) const {
    return tensor && is_plain_float(c().dtype(*tensor));
  }
};

inline QuantFloats read_all_floats(const Checkpoint& c, TensorId tensor) {
  return read_box_floats(c, tensor, whole(copy_of(c.shape(tensor))));
}

}  // namespace shw
