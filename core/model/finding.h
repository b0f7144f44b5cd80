// Findings: what rules report about a checkpoint. Findings are data; the texts for users are
// formatted at the edge from these fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/model/diagnosis.h"
#include "core/tensor/shape.h"

namespace shw {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };

// What happens to a run that loads the unrepaired checkpoint, in order of severity.
enum class Consequence : std::uint8_t { kNone, kHazard, kWillNotLoad, kSilentlyWrong, kDataLost };
std::string_view name(Consequence consequence);  // "silently-wrong"; "none"

using EvidenceValue = std::variant<bool, std::int64_t, double, std::string, Extents,
                                   std::vector<std::string>, std::vector<Box>>;

struct Remedy {
  std::string kind;  // "relabel", "retile", "permute-blocks", "transpose", "mask", "rename",
                     // "rewrite-metadata", "fill"; design 5.1
  bool lossless = false;
  std::string text;  // one sentence: what will be done and what is lost
};

// A non-tensor entry whose value is to be replaced by another entry's, by changing its record.
struct ReplacedEntry {
  std::string fqn;
  std::string from;
  bool operator==(const ReplacedEntry&) const = default;
};

struct Finding {
  std::string rule = {};  // "placement-axis-moved"; never renamed
  Severity severity = Severity::kError;
  std::vector<std::string> subjects = {};  // FQNs, or paths of files
  std::string cause = {};                  // what is wrong, in one sentence
  std::vector<std::pair<std::string, EvidenceValue>> evidence = {};  // in display order
  std::optional<Remedy> remedy = {};                                 // empty: "no safe remedy"
  std::vector<Diagnosis> diagnoses = {};  // input of the repair; at most one per tensor
  std::string link = {};  // "NeMo AutoModel #1691": a public report of the cause; may be empty
  Consequence consequence = Consequence::kNone;  // set by the engine from the fields above
  std::vector<ReplacedEntry> entries = {};       // like `diagnoses`, for non-tensor entries
};

}  // namespace shw
