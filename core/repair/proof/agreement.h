// Certifies files and entries that are not tensors, and checks a certificate against them.
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

// Writes the list of hashes that Megatron-LM verifies (core/facts/storage/integrity.h). The list
// lacks the certificate, which is written last and certifies the list.
Status write_integrity(const Checkpoint& result, WritableDirectory& folder, Progress* progress);

// Certifies every non-tensor entry and every file, except those that a repair keeps for itself. The
// result must be complete but for the certificate. Also verifies the checksums of entries.
Result<std::vector<ObjectCertificate>> certify_objects(const Checkpoint& result,
                                                       Progress* progress);
Result<std::vector<FileCertificate>> certify_files(const Checkpoint& result,
                                                   const ItemHashes& hashes, Progress* progress);

// Contradictions between a certificate and the folder: entries, files, lost.json, the record inside
// the checkpoint, and the certificate's own numbers.
struct CertificateContradictions {
  std::vector<std::string> broken;
  // Files that the certificate does not name; entries that do not match their checksums.
  std::vector<std::string> unknown;
};
Result<CertificateContradictions> find_certificate_contradictions(const Certificate& certificate,
                                                                  const Checkpoint& checkpoint,
                                                                  const ItemHashes& hashes,
                                                                  Progress* progress);

// Compares a record of losses from `file` with the certificate: tensors, numbers, boxes and fills.
// If it speaks for all, it must have every tensor that lost something.
void compare_loss_record(const Certificate& certificate, const std::string& file,
                         const FilledRecord& record, bool speaks_for_all,
                         std::vector<std::string>& broken);

}  // namespace shw
