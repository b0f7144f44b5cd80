// Finds findings, tensors, ranks and files by name. Tests some thousand names per frame, so that a
// million do not delay a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "views/frame.h"

namespace shw {

enum class FoundKind : std::uint8_t { kFinding, kTensor, kRank, kFile };

struct FoundPlace {
  FoundKind kind = FoundKind::kTensor;
  std::uint32_t index = 0;  // of the finding, tensor, rank or file
  std::string name, hint;
};

struct PaletteSearch {
  std::string text;  // text that was searched for
  std::weak_ptr<const Checkpoint> checkpoint;
  std::weak_ptr<const CheckReport> report;
  std::uint32_t tensors_seen = 0, files_seen = 0;
  std::vector<FoundPlace> findings, tensors, ranks, files;

  std::size_t size() const {
    return findings.size() + tensors.size() + ranks.size() + files.size();
  }
  const FoundPlace& operator[](std::size_t i) const;
};

// True if `text` contains `wanted`, ignoring case.
bool has_text_ignoring_case(std::string_view text, std::string_view wanted);

// Continues the search for `text`, or restarts it if the text, the checkpoint or the report has
// changed.
void continue_search(PaletteSearch& search, const Frame& frame, const std::string& text);

}  // namespace shw
