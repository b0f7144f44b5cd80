// What is certified beside the tensors, and whether a certificate agrees with its neighbours.
#pragma once

#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/storage/filled.h"
#include "core/io/store.h"
#include "core/model/checkpoint.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/digests.h"

namespace shw {

// Writes the list of hashes that Megatron-LM verifies (core/facts/storage/integrity.h) beside what
// lies there. The certificate is not in it: it is made last, and certifies the list.
Status write_integrity(const Checkpoint& result, WritableDirectory& folder, Progress* progress);

// Every entry that is no tensor, and every file but those that a repair keeps for itself. The
// result must lie there as it will be, but for the certificate. Entries are held against their
// checksums on the way.
Result<std::vector<ObjectCertificate>> certify_objects(const Checkpoint& result,
                                                       Progress* progress);
Result<std::vector<FileCertificate>> certify_files(const Checkpoint& result,
                                                   const ItemHashes& hashes, Progress* progress);

// What the certificate says and what is there do not say the same: entries, files, lost.json, the
// record inside the checkpoint, and its own numbers.
struct Disagreements {
  std::vector<std::string> broken;
  // A file that the certificate does not name; an entry that does not match its checksums.
  std::vector<std::string> unknown;
};
Result<Disagreements> disagreements(const Certificate& certificate, const Checkpoint& checkpoint,
                                    const ItemHashes& hashes, Progress* progress);

// A record of losses, which `file` says, against the certificate: the same tensors, numbers, boxes
// and fills. One that speaks for all has every tensor that lost something.
void compare_record(const Certificate& certificate, const std::string& file,
                    const FilledRecord& record, bool speaks_for_all,
                    std::vector<std::string>& broken);

}  // namespace shw
