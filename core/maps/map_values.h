// Values of a map for one checkpoint, each computed on first use.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/maps/bound_map.h"
#include "core/maps/model_facts.h"

namespace shw {

class MapValues {
 public:
  MapValues(const ModelMap& map, const ModelFacts& facts, const std::vector<MapTensor>& tensors,
            const NumberedNames& names)
      : map_(map), facts_(facts), tensors_(tensors), names_(names) {}

  // nullopt if the value is unknown.
  std::optional<std::int64_t> value(std::string_view name);
  std::optional<std::int64_t> size(std::string_view expression);
  // Like value() and size(); the kUsage error names the missing value.
  Result<std::int64_t> needed(std::string_view expression);
  Result<Extents> needed(const std::vector<std::string>& expressions);

 private:
  std::optional<std::int64_t> compute_value(std::string_view name);
  std::optional<std::int64_t> call(std::string_view function, std::string_view text);
  std::optional<std::int64_t> rounded_up(std::string_view text);
  std::optional<std::int64_t> dim_of(std::string_view text) const;

  const ModelMap& map_;
  const ModelFacts& facts_;
  const std::vector<MapTensor>& tensors_;  // may still grow
  const NumberedNames& names_;
  std::map<std::string, std::optional<std::int64_t>, std::less<>> known_;
};

}  // namespace shw
