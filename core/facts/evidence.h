// Formats places, chunks and lists for the evidence of findings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// Limit of lists in evidence; the total is given separately. Subjects are never truncated.
inline constexpr std::size_t kMaxEvidence = 64;

// "__3_0.distcp [81920, 86016)": the recorded place of an item.
std::string place_text(const Checkpoint& checkpoint, const ItemPlace& place);
// "model.norm.weight [0:4]": the name of a chunk in evidence.
std::string chunk_text(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk);

// "fc.weight offsets [4, 0] sizes [4, 8]: __1_0.distcp [0, 1024)": a chunk to be listed again.
std::string unlisted_chunk_text(const Checkpoint& checkpoint, TensorId tensor,
                                const UnlistedChunk& tile);

// Ranks that wrote the files, as text, each once; empty if the names of the files do not say.
std::vector<std::string> ranks_of_files(const Checkpoint& checkpoint,
                                        const std::vector<bool>& files);

// Appends `subject` unless it is the last one: chunks of a tensor are adjacent.
void add_subject(std::vector<std::string>& subjects, std::string_view subject);
// The first kMaxEvidence entries of `all`.
std::vector<std::string> capped(const std::vector<std::string>& all);
std::vector<Box> capped(const std::vector<Box>& all);
inline std::int64_t count_of(std::size_t size) {
  return static_cast<std::int64_t>(size);
}

}  // namespace shw
