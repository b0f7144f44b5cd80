// Makes the certificate of a finished run.
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

// A finished run and the results of its proof.
struct CertifiedRun {
  const ProvingTarget& proving;
  const TargetRun& run;
  const std::vector<std::string>& neighbours;  // paths that were not copied
  const ProvedTiles& proved;
};
// Certifies the tensors; files and other entries are certified in agreement.h.
Result<Certificate> certify_target(const CertifiedRun& done);

// Certifies a tensor of the result: shape, dtype, tiles and hashes of their items; nothing about
// its source.
TensorCertificate certify_tensor(const Checkpoint& result, TensorId tensor,
                                 const ItemHashes& hashes);

// Writes what belongs next to the result: lost.json, the list of hashes for Megatron-LM if
// `integrity` is set, and last the certificate, which covers all files that exist by then.
Status write_certificate(const WrittenFolder& written, const ItemHashes& hashes, bool integrity,
                         Certificate& certificate, Progress* progress);

// Runs `work` on rank 0 of the team and sends its result to all ranks; without a team, runs it
// here.
Result<bool> decide_on_rank0(Team* team, const std::function<Result<bool>()>& work);

}  // namespace shw
