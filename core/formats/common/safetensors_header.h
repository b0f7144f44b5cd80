// The header of a safetensors file.
//
//   file    = u64 n, n bytes of JSON (trailing spaces allowed), data
//   header  = { "__metadata__": null | {name: text}, tensor name: {"dtype", "shape",
//               "data_offsets": [begin, end)}, ... }        offsets count from the end of the
//               header
//
// If names repeat, of tensors or in the metadata, only the last one counts, as in the reference
// reader (safetensors 0.8).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string dtype_text;  // "BF16", as in the file
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  std::uint64_t begin = 0, end = 0;  // absolute offsets in the file
};

// The only name in a header that is not a tensor.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// An error that loaders reject, although the rest is readable.
struct SafetensorsProblem {
  std::string tensor;  // may be empty
  std::uint64_t at = 0;
  std::string message;
  bool is_file_truncated = false;  // the file ends before the tensors
  bool is_unread = false;          // intact, but its dtype has no equivalent in torch
  // Unowned bytes from `at` on, between tensors or after the last, in an otherwise valid header.
  bool is_unowned = false;
  std::uint64_t unowned = 0;  // number of these bytes, also if the header has other errors
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;
  std::uint64_t data_begin = 0;
  std::vector<SafetensorsProblem> problems;
  std::vector<std::string> repeated;  // repeated names

  const std::string* find_metadata(std::string_view key) const;
  bool has_unowned() const;  // SafetensorsProblem::is_unowned
};

// kDamaged with file and offset if the header is unusable.
Result<SafetensorsHeader> read_safetensors_header(const ByteSource& source,
                                                  const Progress* progress = nullptr);

// The metadata key of sharding information by torch's Hugging Face writer.
inline constexpr std::string_view kShardingInfoKey = "DCP_SHARDING_INFO";
struct ShardingInfo {
  std::vector<std::pair<std::string, Extents>> offsets;  // sorted by name
  const Extents* find(std::string_view name) const;
};
Result<ShardingInfo> parse_sharding_info(const std::string& text, const std::string& file);

}  // namespace shw
