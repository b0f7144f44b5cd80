// What a repair gives up, and what earlier ones gave up: lost.json beside the certificate, so that
// a trainer can mask or reset exactly those elements, and the record inside the checkpoint.
#pragma once

#include <string>

#include "core/facts/storage/filled.h"
#include "core/repair/proof/certificate.h"

namespace shw {

// Elements, or entries that were replaced: what lost.json tells. What other ranks had is neither.
bool has_lost(const Certificate& certificate);
std::string lost_to_json(const Certificate& certificate);

// Of the result, by its names: what the plan gives up, and what was given up before, in its new
// place. A hole that was there before, and that nothing mends, is not among it.
FilledRecord filled_after(const Checkpoint& checkpoint, const Plan& plan);

}  // namespace shw
