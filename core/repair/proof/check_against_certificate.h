// Checks a checkpoint against its certificate, tensor by tensor.
#pragma once

#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/digests.h"
#include "core/repair/proof/verify_report.h"

namespace shw {

// `hashes` are in chunk order. `holes` receives one sentence per tensor about elements that are in
// no tile and are certified as lost: they are not proved.
VerifyReport check_against_certificate(const Certificate& certificate, const Checkpoint& checkpoint,
                                       const ItemHashes& hashes, std::vector<std::string>& holes);

}  // namespace shw
