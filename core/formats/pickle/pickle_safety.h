// Classifies names in a pickle: those that checkpoints consist of, and those that would execute
// code when torch loads the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/pickle/pickle.h"
#include "core/model/finding.h"

namespace shw {

enum class NameKind {
  kKnown,      // a class or function of torch, numpy, pathlib, Megatron ... that holds data only
  kUnknown,    // never seen in a checkpoint
  kDangerous,  // starts programs, evaluates text, opens files, fetches attributes by name
};
// The known name that differs from this one in one letter: a byte of the file was changed.
std::optional<std::string> similar_known_name(std::string_view module, std::string_view name);
std::string corrupted_name_text(const PickleGlobal& global, const std::string& known);
NameKind classify_pickled_name(std::string_view module, std::string_view name);
// Classifies a name by its use: looking up a member of an enumeration is data.
NameKind classify_pickled_name(const PickleGlobal& global);

// The unpickler that reads the file. Python reads `.metadata` and imports all its names. torch.load
// reads files of programs, with weights_only=True since torch 2.6. torch.distributed.checkpoint
// reads non-tensor entries with weights_only=False.
enum class PickleFileContent : std::uint8_t { kMetadata, kPrograms, kEntries };
// Called names are harmless only if known to construct data. Classes of training frameworks occur
// in healthy checkpoints and are reported as information.
Severity severity_of_import(std::string_view module, std::string_view name, NameKind kind,
                            bool called, PickleFileContent of);

// Findings of the rule "unsafe-pickle": one per name, at most 32 and one for the rest; harmless
// names of one owner together. Names one byte away from a known one are damage, "bad-record".
// `subject` is the file.
std::vector<Finding> unsafe_pickle_findings(const PickleTree& tree, const std::string& subject,
                                            PickleFileContent of = PickleFileContent::kMetadata);

}  // namespace shw
