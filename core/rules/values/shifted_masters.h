// Masters whose chunks equal those of their weights shifted by a constant number of elements;
// found, reported and repaired.
#pragma once

#include <string>
#include <vector>

#include "core/facts/facts.h"
#include "core/facts/values/optimizer_values.h"
#include "core/formats/items/items.h"

namespace shw {

// Per chunk of the master: "0" if it equals its weight, "64" if it is shifted by 64, "?" otherwise,
// as "0,64,?". Empty if nothing can be compared.
std::string tile_shifts(const Checkpoint& checkpoint, TensorId master, const TensorValues& masters,
                        const TensorValues& weights);

// `shifts`: one per master. True if several of their chunks share a shift; then reports it with all
// masters that it explains and sets their `explained`.
bool report_shifted_masters(const Facts& facts, const std::vector<const MasterValues*>& looks,
                            const std::vector<std::string>& shifts, std::vector<bool>& explained,
                            std::vector<Finding>& findings);

}  // namespace shw
