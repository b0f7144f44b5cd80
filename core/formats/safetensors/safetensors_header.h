// The header of a safetensors file.
//
//   file    = u64 n, n bytes of JSON (trailing spaces allowed), data
//   header  = { "__metadata__": null | {name: text}, tensor name: {"dtype", "shape",
//               "data_offsets": [begin, end)}, ... }        offsets count from the end of the
//               header
//
// Of two equal names, of tensors or in the metadata, the last one counts, as the reference reader
// (safetensors 0.8) has it: the other one is as if it were not there.
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
  std::string dtype_text;  // "BF16", as it stands there
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  std::uint64_t begin = 0, end = 0;  // absolute in the file
};

// The one name of a header that is no tensor's.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// Something that loaders refuse, but that leaves the rest readable.
struct SafetensorsProblem {
  std::string tensor;  // may be empty
  std::uint64_t at = 0;
  std::string message;
  bool is_cut_off = false;  // the file ends before the tensors do
  bool is_unread = false;   // no damage: a dtype of the format that torch has none for
  // Bytes between tensors or behind the last one, from `at` on, in a header that is sound else.
  bool is_unowned = false;
  std::uint64_t unowned = 0;  // so many, also where it is not
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;
  std::uint64_t data_begin = 0;
  std::vector<SafetensorsProblem> problems;
  std::vector<std::string> repeated;  // names that are there again

  const std::string* find_metadata(std::string_view key) const;
  bool has_unowned() const;  // SafetensorsProblem::is_unowned
};

// kDamaged with file and offset where there is no header to work with.
Result<SafetensorsHeader> read_safetensors_header(const ByteSource& source,
                                                  const Progress* progress = nullptr);

// Values of the sharding information that torch's Hugging Face writer leaves in the metadata.
inline constexpr std::string_view kShardingInfoKey = "DCP_SHARDING_INFO";
struct ShardingInfo {
  std::vector<std::pair<std::string, Extents>> offsets;  // sorted by name
  const Extents* find(std::string_view name) const;
};
Result<ShardingInfo> parse_sharding_info(const std::string& text, const std::string& file);

}  // namespace shw
