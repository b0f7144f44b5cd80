// What is said about a checkpoint. Findings are data: the words for people are made at the edge
// from these fields alone.
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

// What becomes of a run that starts from this checkpoint as it is; the worst last.
enum class Consequence : std::uint8_t { kNone, kHazard, kWillNotLoad, kSilentlyWrong, kDataLost };
std::string_view name(Consequence consequence);  // "silently-wrong"; "none"

using EvidenceValue = std::variant<bool, std::int64_t, double, std::string, Extents,
                                   std::vector<std::string>, std::vector<Box>>;

struct Remedy {
  std::string kind;  // "relabel", "retile", "permute-blocks", "transpose", "mask", "rename",
                     // "rewrite-metadata", "fill"; design 5.1
  bool lossless = false;
  std::string text;  // one sentence, what will be done and what is lost
};

// An entry that is no tensor shall say what another one says: its storage record points there.
struct EntryTaken {
  std::string fqn;
  std::string from;
  bool operator==(const EntryTaken&) const = default;
};

struct Finding {
  std::string rule;  // "placement-axis-moved": never changes
  Severity severity = Severity::kError;
  std::vector<std::string> subjects;  // FQNs, or paths of files
  std::string cause;                  // one sentence a tired engineer understands
  std::vector<std::pair<std::string, EvidenceValue>> evidence;  // in the order in which it is shown
  std::optional<Remedy> remedy;                                 // none: "no safe remedy"
  std::vector<Diagnosis> diagnoses;  // what the repair works from; one a tensor, may be empty
  std::string link;  // "NeMo AutoModel #1691": where the cause is known upstream; may be empty
  Consequence consequence = Consequence::kNone;  // the engine's, from all that stands above
  std::vector<EntryTaken> entries = {};          // as diagnoses, for entries that are no tensors
};

}  // namespace shw
