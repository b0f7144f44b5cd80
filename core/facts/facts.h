// What the rules look at, all of it, put together once before the first of them runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/formats/items.h"
#include "core/mesh/mesh.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"
#include "core/tiles/coverage.h"

namespace shw {

enum class Depth : std::uint8_t { kMetadata, kHeaders, kData };
std::string_view name(Depth depth);  // "metadata", "headers", "data"

struct RuleMemo;  // what several rules ask for, found once; rules/memo.h

// What a rule may look at. `headers` is empty at Depth::kMetadata, `data` below kData; otherwise
// one a chunk.
struct RuleInput {
  const Checkpoint& checkpoint;
  const Spec* spec = nullptr;
  const Mesh* mesh = nullptr;
  std::span<const Result<ItemHeader>> headers;
  std::span<const Result<DataCheck>> data;         // one a chunk
  std::span<const Result<DataCheck>> object_data;  // one an object
  std::span<const TensorTiling> tilings;           // one a tensor
  Depth depth = Depth::kHeaders;
  const Checkpoint* reference = nullptr;  // --against; null without
  // One a tensor, empty without a reference: which tensor of the reference it is.
  std::span<const std::optional<TensorId>> counterparts = {};
  mutable std::shared_ptr<RuleMemo> memo = {};  // made by the first rule that needs it
};

}  // namespace shw
