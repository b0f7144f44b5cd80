// Whether a checkpoint is what its certificate says, tensor by tensor.
#pragma once

#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/digests.h"
#include "core/repair/proof/verify_report.h"

namespace shw {

// `hashes` in chunk order. `holes`: what lies in no tile and is certified as lost, a sentence a
// tensor; nothing is proved of that.
VerifyReport check_against_certificate(const Certificate& certificate, const Checkpoint& checkpoint,
                                       const ItemHashes& hashes, std::vector<std::string>& holes);

}  // namespace shw
