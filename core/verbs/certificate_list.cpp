#include "core/verbs/certificate_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/facts/storage/filled.h"
#include "core/io/read_whole.h"
#include "core/io/source.h"

namespace shw::verbs {
namespace {

// Tensors of all operations, by old name.
using Subjects = std::set<std::string_view>;
Subjects subjects_of(const Certificate& certificate) {
  Subjects subjects;
  for (const Operation& operation : certificate.operations)
    subjects.insert(operation.subjects.begin(), operation.subjects.end());
  return subjects;
}

TensorOutcome outcome_of_tensor(const TensorCertificate& tensor, const Subjects& subjects) {
  if (tensor.lost != 0) return TensorOutcome::kLost;
  if (!tensor.damage.empty()) return TensorOutcome::kDamaged;
  if (tensor.is_cast) return TensorOutcome::kCast;
  if (tensor.before != tensor.after) return TensorOutcome::kMoved;
  if (!tensor.renamed_from.empty()) return TensorOutcome::kRenamed;
  return subjects.contains(tensor.fqn) ? TensorOutcome::kRelabelled : TensorOutcome::kKept;
}

std::string note_of(const TensorCertificate& tensor) {
  std::string note;
  if (tensor.lost != 0 && tensor.fill == "cast")
    note = "filled with the cast of " + tensor.fill_from;
  else if (tensor.lost != 0 && tensor.fill == "from")
    note = "filled from " + tensor.fill_checkpoint;
  else if (tensor.lost != 0)
    note = tensor.fill == "zero" ? "filled with zeros" : "a gap that was in the source";
  if (!tensor.renamed_from.empty())
    note += (note.empty() ? "was " : ", was ") + tensor.renamed_from;
  if (tensor.out_of_range != 0)
    note += fmt::format("{}{} elements out of range of {}", note.empty() ? "" : ", ",
                        tensor.out_of_range, tensor.dtype);
  if (!tensor.damage.empty())
    note += (note.empty() ? "damaged before: " : ", damaged before: ") + tensor.damage;
  if (tensor.padding != 0)
    note +=
        fmt::format("{}{} elements of padding left out", note.empty() ? "" : ", ", tensor.padding);
  return note;
}

}  // namespace

std::string_view name(TensorOutcome fate) {
  constexpr std::string_view kNames[kTensorOutcomes] = {"lost",       "damaged", "cast", "moved",
                                                        "relabelled", "renamed", "kept"};
  return kNames[static_cast<std::size_t>(fate)];
}

CertificateList list_of(const Certificate& certificate, const std::string& path) {
  CertificateList list{
      path, certificate.lossless, certificate.seal != Certificate::Seal::kBroken, {}};
  const Subjects subjects = subjects_of(certificate);
  for (const TensorCertificate& tensor : certificate.tensors) {
    TensorOutcome fate = outcome_of_tensor(tensor, subjects);
    ++list.count[static_cast<std::size_t>(fate)];
    list.rows.push_back({tensor.fqn, fate, tensor.kept, tensor.lost, note_of(tensor)});
  }
  std::stable_sort(
      list.rows.begin(), list.rows.end(),
      [](const TensorOutcomeRow& a, const TensorOutcomeRow& b) { return a.fate < b.fate; });
  for (const EntryCertificate& entry : certificate.entries)
    list.entries.push_back(entry.fqn + " says what " + entry.from + " says");
  list.dropped = certificate.dropped;
  for (const std::string& fqn : certificate.of_other_ranks)
    list.dropped.push_back(fqn + " of other ranks");
  list.dropped.insert(list.dropped.end(), certificate.left_out.begin(), certificate.left_out.end());
  return list;
}

Result<CertificateList> read_certificate_list(const std::string& folder) {
  std::string path = folder + "/" + kCertificateFile;
  SHW_TRY(auto source, open_file(path, path));
  SHW_TRY(Bytes bytes, read_whole(*source));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SHW_TRY(Certificate certificate, certificate_from_json(text, path));
  return list_of(certificate, path);
}

}  // namespace shw::verbs
