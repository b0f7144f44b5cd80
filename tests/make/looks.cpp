// Snapshots that show file contents.
#include <utility>

#include "make/snapshots.h"

namespace shw::make {

std::shared_ptr<Snapshot> with_bytes(std::shared_ptr<Snapshot> snapshot,
                                     std::optional<verbs::BytesRecord> record) {
  auto look = std::make_shared<ShownBytes>();
  verbs::BytesWindow window;
  window.path = "__0_0.distcp";
  window.file_size = 4096;
  window.at = window.first = 1024;
  for (int b = 0; b < 1024; ++b) window.bytes.push_back(static_cast<std::byte>(b & 255));
  window.parts = {{1000, 1040, PartKind::kHeader, "local header of archive/data/0"},
                  {1040, 1200, PartKind::kPayload, "archive/data/0"},
                  {1200, 1280, PartKind::kTrailer, "data descriptor of archive/data/0"}};
  window.all = window.parts;
  window.record = std::move(record);
  window.dtype = Dtype::kFloat32;
  window.values_first = 1040;
  window.values_last = 1200;
  window.next = 2048;
  look->window = window;
  snapshot->bytes = look;
  return snapshot;
}

std::shared_ptr<Snapshot> with_values(std::shared_ptr<Snapshot> snapshot) {
  auto look = std::make_shared<ShownValues>();
  verbs::SliceValues values;
  values.tensor = *snapshot->tensor;
  values.dtype = Dtype::kBfloat16;
  ExtentsView shape = snapshot->checkpoint->shape(values.tensor);
  values.ask.dims = {{3, 4, false}, {0, shape[1], true}, {0, shape[2], true}};
  values.row_dim = 1;
  values.column_dim = 2;
  values.rows = values.sampled_rows = shape[1];
  values.columns = values.sampled_columns = shape[2];
  values.cell_rows = 8;
  values.cell_columns = 16;
  for (int c = 0; c < 128; ++c)
    values.cells.push_back({static_cast<float>(c - 64), true, c == 5, c == 6, c == 7, c == 8});
  values.greatest = 64;
  values.statistics.kind = NumberKind::kFloat;
  values.statistics.nan = 1;
  values.statistics.histogram = {{-1, 3, 10}, {1, -2, 7}, {1, 4, 3}};
  values.table_rows = values.table_columns = 2;
  values.table = {"1", "NaN", "", "-0.125"};
  look->values = values;
  snapshot->values = look;
  return snapshot;
}

std::shared_ptr<Snapshot> with_names(std::shared_ptr<Snapshot> snapshot, std::size_t rows) {
  auto names = std::make_shared<verbs::PairedNames>();
  names->map = "hf-megatron";
  names->from = "hf";
  names->to = "torch_dist";
  const Checkpoint& c = *snapshot->checkpoint;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::string fqn(c.fqn(TensorId{static_cast<std::uint32_t>(i % c.tensor_count())}));
    verbs::PairedRow row;
    row.from = {fqn};
    row.from_shapes = {"[64, 64]"};
    row.to = {"decoder.layers.kind" + std::to_string(i) + ".weight"};
    row.to_shapes = {"[2, 64, 64]"};
    row.tensors = {{{fqn}, {"decoder.layers.kind" + std::to_string(i) + ".weight"}}};
    row.from_count = row.to_count = 1;
    if (i == 1) {
      row.from = {"model.layers.{l}.self_attn.q_proj.weight",
                  "model.layers.{l}.self_attn.k_proj.weight",
                  "model.layers.{l}.self_attn.v_proj.weight"};
      row.does = {"Join along dim 0, one after the other: 64, 32 and 32 rows.",
                  "Stack 2 tensors over {l} along a new dim 0: [2, 128, 64]."};
    }
    if (i == 2) row.different = 1;
    if (i == 3) row.missing = 1;
    names->rows.push_back(std::move(row));
  }
  names->only_from = {{"model.rotary.inv_freq", "no row of the map uses it"}};
  names->only_to = {{"rng_state", "left out: it is not a weight"}};
  snapshot->paired = names;
  snapshot->compared_with = "/runs/8/iter_0000100";
  return snapshot;
}

}  // namespace shw::make
