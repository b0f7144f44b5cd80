// Which names in a pickle are what checkpoints are made of, and which would run something when
// torch loads the file (spec/dcp-format.md 2.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/common/pickle.h"
#include "core/model/finding.h"

namespace shw {

enum class NameKind {
  kKnown,      // a class or function of torch, numpy, pathlib, Megatron ... that holds data only
  kUnknown,    // never seen in a checkpoint
  kDangerous,  // starts programs, evaluates text, opens files, fetches attributes by name
};
// The known name that one is a letter beside: it is no other program's, a byte of it changed.
std::optional<std::string> similar_known_name(std::string_view module, std::string_view name);
std::string bent_name_text(const PickleGlobal& global, const std::string& known);
NameKind classify_pickled_name(std::string_view module, std::string_view name);
// As it is used: to look up a member of an enumeration is data.
NameKind classify_pickled_name(const PickleGlobal& global);

// Who unpickles it, and how. Python reads `.metadata` with all that it names. torch.load reads the
// files of programs, with weights_only=True since torch 2.6. torch.distributed.checkpoint reads
// entries that are not tensors with weights_only=False.
enum class PickleOf : std::uint8_t { kMetadata, kPrograms, kEntries };
// Only what is known to put data together is harmless where it is called. Classes of frameworks
// that train models are in healthy checkpoints: information.
Severity severity_of_import(std::string_view module, std::string_view name, NameKind kind,
                            bool called, PickleOf of);

// Findings of the rule "unsafe-pickle": one a name, at most 32 and one for the rest; harmless names
// of one owner together. Names one byte away from a known one are damage, "bad-record". `subject`
// is the file.
std::vector<Finding> unsafe_pickle_findings(const PickleTree& tree, const std::string& subject,
                                            PickleOf of = PickleOf::kMetadata);

}  // namespace shw
