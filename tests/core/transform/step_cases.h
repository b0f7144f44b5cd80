// A saved checkpoint for tests of single steps, and what becomes of it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/items/items.h"
#include "core/formats/table.h"
#include "core/repair/run/make_target.h"
#include "core/transform/lower.h"
#include "core/transform/random_steps.h"

namespace shw::test {

inline const Format& written_format(std::string_view name) {
  for (const FormatRow& row : formats()) {
    if (row.format->name == name) return *row.format;
  }
  FAIL("there is no such format");
  return kUnknownFormat;
}

struct Saved {
  MemoryStore store{};
  PlainCheckpoint tensors;
  std::shared_ptr<const Checkpoint> checkpoint;

  explicit Saved(PlainCheckpoint all) : tensors(std::move(all)) {
    Dice dice(11);
    save_in(store, tensors, dice);
    checkpoint = open_in(store, "/ck");
  }
};

inline PlainTensor counted(Dtype dtype, const Extents& shape) {
  PlainTensor tensor{dtype, shape, {}};
  auto count = static_cast<std::size_t>(*volume(shape));
  for (std::size_t i = 0; i < count; ++i)
    tensor.elements.push_back(element_of(dtype, static_cast<double>(i)));
  tensor.lost.resize(count, false);
  tensor.out_of_range.resize(count, false);
  return tensor;
}

inline PlainCheckpoint two_tensors() {
  return {{"a.weight", counted(Dtype::kFloat32, {4, 6})},
          {"b.weight", counted(Dtype::kFloat32, {3, 6})}};
}

inline std::string refusal(const Saved& saved, const std::vector<Step>& steps) {
  auto all = apply_steps(target_state_of(saved.checkpoint), steps);
  if (!all) return all.error().message + " " + all.error().place.tensor;
  auto lowered = lower_target(*all, {&written_format("dcp"), 0, "/out"});
  return lowered ? "" : lowered.error().message + " " + lowered.error().place.tensor;
}

inline bool says(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

inline Bytes read_back(const MemoryStore& store, const std::string& folder,
                       const std::string& fqn) {
  auto checkpoint = open_in(store, folder);
  auto id = checkpoint->find(fqn);
  REQUIRE(id.has_value());
  auto values = read_tensor(*checkpoint, *id);
  REQUIRE(values.has_value());
  return values->bytes;
}

inline void make_into(MemoryStore& store, const TargetState& all, const std::string& out) {
  TargetRun run;
  run.form = {&written_format("dcp"), 0, out};
  run.steps = {"steps"};
  auto made = make_target(store, all, run, nullptr);
  if (!made) FAIL(made.error().message);
}

}  // namespace shw::test
