#include "core/rules/undecoded.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "core/base/printable.h"
#include "core/base/words.h"
#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_families.h"
#include "core/facts/values/quant_forms.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

// True if a tensor may hold packed codes: a matrix of anything but floats of 16 bits and more.
bool may_hold_codes(const Checkpoint& c, TensorId tensor) {
  return c.shape(tensor).size() >= 2 && !is_plain_float(c.dtype(tensor)) &&
         c.dtype(tensor) != Dtype::kBool;
}

}  // namespace

std::vector<std::string> undecoded_weights_texts(const Facts& facts) {
  std::vector<std::string> out;
  const Checkpoint& c = facts.checkpoint;
  if (c.directory() == nullptr) return out;
  const auto config = read_quant_config(*c.directory());
  if (!config || config->method.empty()) return out;
  const auto families = quant_families(facts, config);
  const std::shared_ptr<const Checkpoint> checkpoint(&c, [](const Checkpoint*) {});
  TensorClasses classes;
  if (facts.depth != Depth::kMetadata) classes = classes_of_families(c, families);
  std::map<std::string, std::vector<std::string>> undecoded;  // weights by reason
  std::size_t weights = 0;
  for (const QuantFamily& family : families) {
    weights += family.pairs.size();
    if (facts.depth == Depth::kMetadata) continue;
    for (const QuantPair& pair : family.pairs) {
      if (!family.scheme->codec.empty() && !pair.beside[0]) continue;
      const auto decoded = decoded_weight(checkpoint, family, pair, *config, classes);
      if (!decoded && decoded.error().kind == ErrorKind::kUnsupported)
        undecoded[decoded.error().message].emplace_back(c.fqn(pair.weight));
    }
  }
  for (const auto& [why, names] : undecoded)
    out.push_back(fmt::format("the values of {}: {} {}", plural(names.size(), "quantised weight"),
                              short_list_text(names), why));
  bool may_have_codes = false;
  for (TensorId tensor : each_tensor(facts))
    may_have_codes = may_have_codes || may_hold_codes(c, tensor);
  if (weights == 0 && may_have_codes)
    out.push_back(
        fmt::format("the values of weights that {} says were quantised by \"{}\", which "
                    "Shardwright cannot decode",
                    config->file, printable(config->method.substr(0, 40))));
  return out;
}

}  // namespace shw
