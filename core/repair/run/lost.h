// Elements that this and earlier repairs lost: lost.json next to the certificate, so that a trainer
// can mask or reset exactly those elements, and the record inside the checkpoint.
#pragma once

#include <string>

#include "core/facts/storage/filled.h"
#include "core/repair/proof/certificate.h"

namespace shw {

// True if lost.json is needed: for lost elements or replaced entries. Values of other ranks that
// were not copied do not count.
bool has_lost(const Certificate& certificate);
std::string lost_to_json(const Certificate& certificate);

// Losses in the result, by its names: those of the plan, and earlier ones at their new place. Holes
// of the source that stay holes are not included.
FilledRecord losses_after_plan(const Checkpoint& checkpoint, const Plan& plan);

}  // namespace shw
