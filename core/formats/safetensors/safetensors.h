// Hugging Face checkpoints: plain safetensors files, one or many, and the sharded form that torch's
// HuggingFaceStorageWriter leaves, one set of files a rank.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/sink.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

// The .safetensors files of a directory as one checkpoint. Sharded files say where their chunks
// begin, but nobody says how large a tensor is: its shape is inferred as the maximum of offset +
// size, as torch does, so a lost last shard cannot be seen here. A file that cannot be read becomes
// a finding (bad-record), unless none can.
Result<std::shared_ptr<const Checkpoint>> open_safetensors(
    std::shared_ptr<const Directory> directory, Progress* progress);

// Copies a sharded file with other saved_offsets for the given tensors. The header keeps its length
// where the new text fits (padded with spaces), so no data moves inside the file; holes stay holes.
Status copy_with_sharding_info(const ByteSource& source,
                               const std::map<std::string, Extents>& new_offsets, ByteSink& out);

// A file with other tensors in it than before.
struct SafetensorsTensor {
  std::string dtype_text;  // of one that the file does not hold yet
  Extents shape;
  std::uint64_t length = 0;
  std::function<Status(ByteSink&)> write;  // exactly `length` bytes
};
struct SafetensorsChange {
  std::set<std::string> dropped;
  std::map<std::string, SafetensorsTensor> written;  // in place of one of that name, or new
  std::map<std::string, Extents> saved_offsets;      // of shards; those not named keep theirs
  std::string filled = {};  // kFilledAttribute of the file's __metadata__; empty: stays as it is
  bool empty() const { return dropped.empty() && written.empty() && saved_offsets.empty(); }
  bool moves_bytes() const { return !dropped.empty() || !written.empty() || !filled.empty(); }
};
// Writes the file anew: what is named nowhere keeps its bytes, `__metadata__` its entries. The data
// begin at a multiple of 8 and follow each other without holes, wider elements first, as the
// reference implementation writes them. A source whose own header is damaged is refused.
Status rewrite_safetensors(const ByteSource& source, const SafetensorsChange& change,
                           ByteSink& out);

// Where the payloads of `change.written` will begin in the file, by name: who makes them need not
// wait for the ones before. Needs no `write`.
Result<std::map<std::string, std::uint64_t>> payload_offsets(const ByteSource& source,
                                                             const SafetensorsChange& change);

// The index beside the files after tensors have grown or shrunk: `metadata.total_size` and
// `total_parameters` are moved by that much, all else stays. The text unchanged where it has
// neither.
// `homes`: tensors whose entries name the wrong file, and the right one.
Result<std::string> index_with(const ByteSource& source, std::int64_t more_bytes,
                               std::int64_t more_elements,
                               const std::map<std::string, std::string>& homes = {});
// The index of a directory: "model.safetensors.index.json", else the one of another stem
// (diffusers) where there is exactly one.
std::optional<std::string> find_safetensors_index(const Directory& directory);
inline constexpr std::string_view kSafetensorsIndex = "model.safetensors.index.json";

}  // namespace shw
