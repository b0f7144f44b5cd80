// Reports an autoencoder whose middle block is in one of its two halves alone.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

void find_half_autoencoders(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
