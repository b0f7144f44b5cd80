// The certificate of what was carried out.
#pragma once

#include <functional>

#include "core/base/progress.h"
#include "core/exec/folder_run.h"
#include "core/model/checkpoint.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/digests.h"

namespace shw {

class ChecksumMismatches;
class Team;

// A plan, what it was for and what came out of it. Hashes are in chunk order; kNoHash where an item
// of the source did not come along.
struct CarriedOut {
  const Plan& plan;
  const Checkpoint& source;
  const ItemHashes& before;
  const Checkpoint& result;
  const ItemHashes& after;
  ChecksumMismatches& mismatches;  // of the result
};
// All but what is certified beside the tensors. An error where an item that was to stay as it is
// did not.
Result<Certificate> certify(const CarriedOut& done, Progress* progress);

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
