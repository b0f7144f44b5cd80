// A DCP checkpoint on disk, written by our own writers from boxes and payloads.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/formats/dcp/dcp_write.h"
#include "core/formats/open.h"
#include "core/io/store.h"
#include "core/repair/reference.h"

namespace shw {

struct MadeChunk {
  Box box;         // as recorded
  Extents stored;  // the sizes of the payload
  Values values;
  std::uint32_t writer = 0;
  bool names_last_item =
      false;  // its record names the item of the previous chunk, and it has none of its own
};
struct MadeTensor {
  std::string fqn;
  Extents shape;
  std::vector<MadeChunk> chunks;
};

inline Bytes floats(const Values& values) {
  Bytes bytes(values.size() * 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float value = static_cast<float>(values[i]);
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return bytes;
}

// All tensors are float32, with one file per writer; `entry` is an additional non-tensor entry in
// its own file.
inline void write_checkpoint(const std::string& path, const std::vector<MadeTensor>& tensors,
                             const std::string& entry = {}) {
  auto directory = posix_store().make_folder(path);
  REQUIRE(directory.has_value());
  std::map<std::uint32_t, std::unique_ptr<ByteSink>> sinks;
  DcpMetadata metadata;
  metadata.checkpoint_id = path;
  auto sink_of = [&](std::uint32_t writer) -> ByteSink& {
    auto& sink = sinks[writer];
    if (sink == nullptr) {
      auto made = (*directory)->create("__" + std::to_string(writer) + "_0.distcp");
      REQUIRE(made.has_value());
      sink = std::move(*made);
    }
    return *sink;
  };
  for (const MadeTensor& tensor : tensors) {
    DcpTensor out{tensor.fqn, Dtype::kFloat32, false, tensor.shape, {}, {}};
    for (const MadeChunk& chunk : tensor.chunks) {
      if (chunk.names_last_item) {
        out.chunks.push_back({chunk.box.offsets, chunk.box.sizes, out.chunks.back().item});
        continue;
      }
      ByteSink& sink = sink_of(chunk.writer);
      std::uint64_t offset = sink.position();
      auto length = write_torch_item(sink, Dtype::kFloat32, chunk.stored, floats(chunk.values));
      REQUIRE(length.has_value());
      std::string file = "__" + std::to_string(chunk.writer) + "_0.distcp";
      out.chunks.push_back({chunk.box.offsets, chunk.box.sizes, {file, offset, *length, {}}});
    }
    metadata.tensors.push_back(std::move(out));
  }
  for (auto& [writer, sink] : sinks) REQUIRE(sink->finish());
  if (!entry.empty()) {
    const std::string file = "entry.distcp", text = "what " + entry + " says";
    auto sink = (*directory)->create(file);
    REQUIRE(sink.has_value());
    REQUIRE((*sink)->write(std::as_bytes(std::span(text))));
    REQUIRE((*sink)->finish());
    metadata.objects.push_back({entry, {file, 0, text.size()}, {}});
  }
  auto sink = (*directory)->create(".metadata");
  REQUIRE(sink.has_value());
  REQUIRE(write_dcp_metadata(metadata, **sink));
  REQUIRE((*sink)->finish());
}

inline std::shared_ptr<const Checkpoint> opened(const std::string& path) {
  auto checkpoint = open_checkpoint(path);
  if (!checkpoint) FAIL(checkpoint.error().message);
  return *checkpoint;
}

inline Values values_of(const Checkpoint& checkpoint, const std::string& fqn) {
  auto tensor = checkpoint.find(fqn);
  REQUIRE(tensor.has_value());
  auto read = read_tensor(checkpoint, *tensor);
  if (!read) FAIL(read.error().message);
  Values values;
  for (std::size_t i = 0; i + 4 <= read->bytes.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, read->bytes.data() + i, 4);
    values.push_back(static_cast<std::int64_t>(value));
  }
  return values;
}

}  // namespace shw
