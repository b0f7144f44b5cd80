#include "core/repair/verify.h"

#include <fmt/core.h>

#include "core/formats/open.h"
#include "core/repair/inverse.h"
#include "core/repair/proof.h"

namespace shw {
namespace {

// Bytes that moved, mapped back to what the certificate says they were.
Status add_inverse(const Certificate& certificate, const Checkpoint& checkpoint,
                   VerifyReport& report, Progress* progress) {
  std::int64_t back = 0;
  for (const TensorCertificate& entry : certificate.tensors) {
    auto tensor = checkpoint.find(entry.fqn);
    if (entry.inverse.empty() || !tensor) continue;
    auto why = contradiction_of_inverse(entry.inverse, *tensor, checkpoint, progress);
    if (!why && why.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(why.error());
    if (why && why->empty()) {
      ++back;
      continue;
    }
    if (report.outcome == VerifyReport::Outcome::kProved) report.reasons.clear();
    report.outcome = VerifyReport::Outcome::kBroken;
    report.reasons.push_back(entry.fqn + ": " + (why ? *why : why.error().message));
  }
  if (back != 0 && report.outcome == VerifyReport::Outcome::kProved) {
    report.reasons.push_back(
        fmt::format("{} {} whose bytes moved: mapped back, they are what the source held", back,
                    back == 1 ? "tensor" : "tensors"));
  }
  return {};
}

void add_reasons(VerifyReport& report, VerifyReport::Outcome outcome,
                 const std::vector<std::string>& reasons) {
  if (reasons.empty()) return;
  if (report.outcome == VerifyReport::Outcome::kProved) report.reasons.clear();
  if (report.outcome != VerifyReport::Outcome::kBroken) report.outcome = outcome;
  report.reasons.insert(report.reasons.end(), reasons.begin(), reasons.end());
}

// The certificate itself, and what lies beside it.
Status add_disagreements(const Certificate& certificate, const Checkpoint& checkpoint,
                         const std::vector<std::string>& hashes, VerifyReport& report,
                         Progress* progress) {
  if (certificate.seal == Certificate::Seal::kBroken) {
    add_reasons(report, VerifyReport::Outcome::kBroken,
                {std::string(kCertificateFile) +
                 ": was changed after it was written: its content_hash is another"});
  }
  auto found = disagreements(certificate, checkpoint, hashes, progress);
  if (!found) {
    if (found.error().kind == ErrorKind::kCancelled) return tl::unexpected<Error>(found.error());
    const Error& error = found.error();
    add_reasons(report, VerifyReport::Outcome::kBroken,
                {(error.place.file.empty() ? error.place.tensor : error.place.file) + ": " +
                 error.message});
    return {};
  }
  add_reasons(report, VerifyReport::Outcome::kBroken, found->broken);
  add_reasons(report, VerifyReport::Outcome::kUndecided, found->unknown);
  if (certificate.seal == Certificate::Seal::kMissing) {
    add_reasons(report, VerifyReport::Outcome::kUndecided,
                {std::string(kCertificateFile) +
                 ": has no content_hash: it was written by an older version, or was changed, and "
                 "does not say all that would be proved"});
  }
  return {};
}

}  // namespace

Result<VerifyReport> verify_repair(const std::string& checkpoint_path, Progress* progress) {
  SHW_TRY(auto checkpoint, open_checkpoint(checkpoint_path, progress));
  return verify_repair(*checkpoint, progress);
}

Result<VerifyReport> verify_repair(const Checkpoint& checkpoint, Progress* progress) {
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint lies in no directory");
  const Directory& directory = *checkpoint.directory();
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

  if (progress != nullptr) progress->begin(Phase::kVerifying, item_bytes(checkpoint), true);
  auto hashes = hash_all_items(checkpoint, progress);
  if (!hashes) {
    if (hashes.error().kind == ErrorKind::kCancelled) return tl::unexpected<Error>(hashes.error());
    // A file that is gone or cut off breaks the proof; it does not stop the verdict.
    const Error& error = hashes.error();
    report.outcome = VerifyReport::Outcome::kBroken;
    report.reasons = {error.place.tensor + " in " + error.place.file + ": " + error.message};
    return report;
  }
  report = hold_against(certificate, checkpoint, *hashes);
  if (report.outcome == VerifyReport::Outcome::kProved)
    SHW_CHECK(add_inverse(certificate, checkpoint, report, progress));
  SHW_CHECK(add_disagreements(certificate, checkpoint, *hashes, report, progress));
  return report;
}

}  // namespace shw
