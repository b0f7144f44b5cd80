// Reports sizes in config.json that are others than those in the reference's config.json, where the
// weights of both have the same shapes.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

void report_config_of_reference(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
