// The contents of a certificate as a list: the result for every tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/repair/proof/certificate.h"

namespace shw::verbs {

// Most severe first; a tensor with losses may also have moved.
enum class TensorOutcome : std::uint8_t {
  kLost,
  kDamaged,  // before the repair: TensorCertificate::damage
  kCast,
  kMoved,
  kRelabelled,
  kRenamed,
  kKept
};
inline constexpr std::size_t kTensorOutcomes = 7;
std::string_view name(TensorOutcome fate);  // "lost"

struct TensorOutcomeRow {
  std::string fqn;
  TensorOutcome fate = TensorOutcome::kKept;
  std::int64_t kept = 0, lost = 0;  // elements
  std::string note;                 // "filled with zeros", "was model.a"
};

struct CertificateList {
  std::string path;
  bool lossless = true;
  bool sealed = true;                  // false: modified after writing
  std::vector<TensorOutcomeRow> rows;  // by fate, then in certificate order
  std::size_t count[kTensorOutcomes] = {};
  std::vector<std::string> entries = {};  // non-tensor entries that hold another entry's value
  std::vector<std::string> dropped = {};
};

CertificateList list_of(const Certificate& certificate, const std::string& path);
// Reads the certificate of a repaired folder.
Result<CertificateList> read_certificate_list(const std::string& folder);

}  // namespace shw::verbs
