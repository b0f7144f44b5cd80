// What is made anew gets checksums of its own, good ones, whatever went into it: so what goes into
// it is held against the checksums that it was saved with, before anything is written.
#pragma once

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

// An error that names the item where the bytes of one are not those that were written. Items
// without checksums are not read; what cannot be read is for who needs it to say.
Status check_bytes(const Checkpoint& checkpoint, Team* team, Progress* progress);

}  // namespace shw::verbs
