// Master copies whose tiles are those of their weights, shifted by one number of elements: found,
// told and put back.
#pragma once

#include <string>
#include <vector>

#include "core/facts/facts.h"
#include "core/facts/values/value_looks.h"
#include "core/formats/items.h"

namespace shw {

// By tile of the master "0" where it is its weight, "64" where it is it shifted by that much, "?"
// else: "0,64,?". Empty where there is nothing to compare.
std::string tile_shifts(const Checkpoint& checkpoint, TensorId master, const TensorValues& masters,
                        const TensorValues& weights);

// `shifts`: of each of the masters. Whether there is a shift that several of their tiles have; then
// it is reported with all masters whose tiles it explains, which are set in `explained`.
bool report_shifted_masters(const Facts& facts, const std::vector<const MasterLook*>& looks,
                            const std::vector<std::string>& shifts, std::vector<bool>& explained,
                            std::vector<Finding>& findings);

}  // namespace shw
