// What a loader said when it stopped, found anywhere in what a person pasted: one line, or the
// tracebacks of all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

enum class ErrorForm : std::uint8_t {
  kShapes,              // a saved and a requested shape
  kMissingKey,          // Missing key in checkpoint state_dict: X
  kUnexpectedKey,       // Unexpected key(s) in state_dict: "X"
  kNoStorageRecord,     // KeyError: MetadataIndex(fqn='X', ...)
  kNoCentralDirectory,  // failed finding central directory
  kBadArchive,          // invalid header or archive is corrupted
  kPickledByPython313,  // No module named 'pathlib._local'
  kSixProperties,       // too many values to unpack (expected 5)
  kPlanRefused,         // Failed to validate global plan
  kPickleCut,           // pickle data was truncated, Ran out of input
  kMissingFile,         // No such file or directory: '.../__3_0.distcp'
  kUnsafeGlobal,        // Unsupported global
  kStateIsNoDTensor,    // 'Tensor' object has no attribute 'to_local'
};
std::string_view name(ErrorForm form);  // "shapes", "missing-key", ...

struct ErrorMessage {
  ErrorForm form = ErrorForm::kShapes;
  std::string tensor;      // or the file, of kMissingFile; empty where the message names none
  Extents saved, current;  // of kShapes
  friend bool operator==(const ErrorMessage&, const ErrorMessage&) = default;
};

struct ErrorText {
  std::vector<ErrorMessage> messages;  // each once, in the order of the text, at most kMaxMessages
  std::size_t left_out = 0;            // distinct ones beyond that
  bool cut = false;                    // only the last kMaxErrorText bytes were read
};
inline constexpr std::size_t kMaxMessages = 256;
inline constexpr std::size_t kMaxErrorText = std::size_t{1} << 20;

// Never fails: what is not understood gives no message.
ErrorText parse_error_text(std::string_view text);

// One line for each form that is understood, for the one whose text was not.
std::vector<std::string> understood_forms();

}  // namespace shw
