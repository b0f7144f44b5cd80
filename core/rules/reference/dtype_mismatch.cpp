#include <compare>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

// True for packed numbers of another shape than the floats that they stand for: they are not cast.
bool is_packed_instead(const Checkpoint& c, TensorId tensor, const SpecEntry& entry) {
  const Dtype saved = c.dtype(tensor);
  const bool is_whole_number = saved == Dtype::kUint8 || saved == Dtype::kInt8 ||
                               saved == Dtype::kInt32 || saved == Dtype::kUint32;
  return is_whole_number && is_plain_float(*entry.dtype) && c.shape(tensor).size() >= 2 &&
         !same(c.shape(tensor), entry.shape);
}

void find_dtype_mismatches(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& checkpoint = facts.checkpoint;
  // One finding per pair of dtypes, because one cast is one cause.
  struct Cast {
    Dtype saved, expected;
    bool is_packed;
    auto operator<=>(const Cast&) const = default;
  };
  std::map<Cast, std::vector<std::string>> casts;
  for (const auto& [fqn, entry] : each_of(facts.spec->entries, facts)) {
    auto tensor = checkpoint.find(fqn);
    if (!tensor || !entry.dtype) continue;
    Dtype saved = checkpoint.dtype(*tensor);
    if (saved != Dtype::kUnknown && saved != *entry.dtype)
      casts[{saved, *entry.dtype, is_packed_instead(checkpoint, *tensor, entry)}].push_back(fqn);
  }
  for (auto& [cast, subjects] : casts) {
    std::string saved(name(cast.saved)), expected(name(cast.expected));
    Finding finding{.rule = "dtype-mismatch", .severity = Severity::kWarning};
    finding.cause =
        plural(subjects.size(), "tensor") + (subjects.size() == 1 ? " is" : " are") + " saved as " +
        saved + " where the model expects " + expected +
        (cast.is_packed ? ", and in another shape: packed numbers of a quantised weight. A loader "
                          "that builds a plain module there fails, or reads them as weights."
                        : ": torch casts on load without an error, so precision may be lost or "
                          "memory use doubled unnoticed.");
    finding.evidence = {
        {"saved", saved}, {"expected", expected}, {"count", count_of(subjects.size())}};
    finding.subjects = std::move(subjects);
    findings.push_back(std::move(finding));
  }
}

}  // namespace

const Rule kDtypeMismatch = {
    .id = "dtype-mismatch",
    .depth = Depth::kMetadata,
    .title = "A tensor's dtype differs from the model's",
    .teaches =
        "torch casts the saved elements to the model's dtype on load, without an error. Casting "
        "down loses precision (float32 masters to bfloat16); casting up looks precise but is not. "
        "Sometimes this is intended; often an export or a mixed-precision wrapper cast tensors "
        "that it should not.",
    .lesson = {.drawing = R"(
  master, float32      0.10009765625 + 0.00001
  saved,  bfloat16     0.10009765625             16 bits of it are gone
  loaded, float32      0.10009765625             looks precise, is not
)",
               .remedy = "If it is not intended, save again from the run that has the "
                         "higher-precision values."},
    .words = {.text = "of another dtype than the model's"},
    .run = find_dtype_mismatches,
};

}  // namespace shw
