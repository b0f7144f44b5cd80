// A certificate as a list that a person can read: what became of every tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/repair/proof/certificate.h"

namespace shw::verbs {

// The gravest first. Of one that lost elements the rest may have moved as well.
enum class TensorFate : std::uint8_t {
  kLost,
  kDamaged,  // it was before: TensorCertificate::damage
  kCast,
  kMoved,
  kRelabelled,
  kRenamed,
  kKept
};
inline constexpr std::size_t kFates = 7;
std::string_view name(TensorFate fate);  // "lost"

struct FateRow {
  std::string fqn;
  TensorFate fate = TensorFate::kKept;
  std::int64_t kept = 0, lost = 0;  // elements
  std::string note;                 // "filled with zeros", "was model.a"
};

struct CertificateList {
  std::string path;
  bool lossless = true;
  bool sealed = true;         // false: it is not what was written
  std::vector<FateRow> rows;  // by fate, in the order of the certificate
  std::size_t count[kFates] = {};
  std::vector<std::string> entries = {};  // that are no tensors and say what others said
  std::vector<std::string> dropped = {};
};

CertificateList list_of(const Certificate& certificate, const std::string& path);
// Of a folder that a repair made.
Result<CertificateList> certificate_of(const std::string& folder);

}  // namespace shw::verbs
