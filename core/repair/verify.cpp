#include <limits>

#include "core/formats/open.h"
#include "core/repair/apply.h"
#include "core/repair/proof.h"

namespace shw {

std::string_view name(VerifyReport::Outcome outcome) {
  switch (outcome) {
    case VerifyReport::Outcome::kProved:
      return "proved";
    case VerifyReport::Outcome::kBroken:
      return "broken";
    case VerifyReport::Outcome::kUndecided:
      break;
  }
  return "undecided";
}

Result<VerifyReport> verify_repair(const std::string& checkpoint_path, Progress* progress) {
  SHW_TRY(auto checkpoint, open_checkpoint(checkpoint_path, progress));
  const Directory& directory = *checkpoint->directory();
  VerifyReport report;
  if (directory.stat(kCertificateFile).kind != EntryKind::kFile) {
    report.reasons = {std::string("there is no ") + kCertificateFile +
                      ": nothing says what it was before"};
    return report;
  }
  SHW_TRY(auto source, directory.open(kCertificateFile));
  SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SHW_TRY(Certificate certificate, certificate_from_json(text, kCertificateFile));

  if (progress != nullptr) progress->begin(Phase::kVerifying, item_bytes(*checkpoint), true);
  auto hashes = hash_all_items(*checkpoint, progress);
  if (!hashes) {
    if (hashes.error().kind == ErrorKind::kCancelled) return tl::unexpected<Error>(hashes.error());
    // A file that is gone or cut off breaks the proof; it does not stop the verdict.
    const Error& error = hashes.error();
    report.outcome = VerifyReport::Outcome::kBroken;
    report.reasons = {error.place.tensor + " in " + error.place.file + ": " + error.message};
    return report;
  }
  report = hold_against(certificate, *checkpoint, *hashes);
  return report;
}

}  // namespace shw
