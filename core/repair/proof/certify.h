// The certificate of what was carried out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/folder_run.h"
#include "core/model/checkpoint.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/digests.h"
#include "core/repair/proof/prove_target.h"

namespace shw {

class Team;
struct TargetRun;

// What was carried out, and what was proved of it.
struct CertifiedRun {
  const ProvingTarget& proving;
  const TargetRun& run;
  const std::vector<std::string>& neighbours;  // files that do not come along
  const ProvedTiles& proved;
};
// All but what is certified beside the tensors.
Result<Certificate> certify_target(const CertifiedRun& done);

// What a tensor of the result is: shape, dtype, tiles and the hashes of their items. Nothing of
// what it was.
TensorCertificate certify_tensor(const Checkpoint& result, TensorId tensor,
                                 const ItemHashes& hashes);

// What stands beside the result: lost.json, the list of hashes for Megatron-LM where `integrity`
// asks for it, and, of all that lies there by then, the certificate itself.
Status write_certificate(const WrittenFolder& written, const ItemHashes& hashes, bool integrity,
                         Certificate& certificate, Progress* progress);

// What the first member of a team finds and writes, heard by all; alone it is this one.
Result<bool> run_on_rank0_and_broadcast(Team* team, const std::function<Result<bool>()>& work);

}  // namespace shw
