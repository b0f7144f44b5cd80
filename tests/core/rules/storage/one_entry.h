// A checkpoint in memory with one entry that is not a tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/formats/dcp/dcp_formats.h"
#include "core/make_zip.h"
#include "core/model/builder.h"

namespace shw::test {

inline constexpr std::size_t kBefore = 64;  // bytes of the file before the item

// A checkpoint of DCP with one entry, "rng", whose item is `item`.
inline std::shared_ptr<const Checkpoint> with_object(const std::string& item) {
  CheckpointBuilder builder;
  std::string file = std::string(kBefore, 'x') + item;
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("ckpt", {{"__0_0.distcp", to_bytes(file)}}));
  FileId id = builder.file("__0_0.distcp");
  builder.add_object({"rng", ItemPlace{id, kBefore, static_cast<std::int64_t>(item.size())}}, {});
  auto checkpoint = builder.finish();
  return checkpoint;
}

}  // namespace shw::test
