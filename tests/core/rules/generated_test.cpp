// Hundreds of generated layouts: healthy ones give no findings, broken ones are named, and a
// diagnosis places elements where their rank really had them.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/rules/layouts.h"

using namespace shw;
using namespace shw::test;

namespace {

// Megatron-FSDP: rows of a flat bucket, cut anywhere, nothing from empty ranks.
SavedTensor bucket(std::string fqn, SpecEntry entry, Dice& dice) {
  std::vector<std::int64_t> ends;
  std::int64_t ranks = entry.mesh->size();
  for (std::int64_t i = 0; i + 1 < ranks; ++i) ends.push_back(dice.upto(entry.shape[0]));
  std::sort(ends.begin(), ends.end());
  ends.push_back(entry.shape[0]);
  return {std::move(fqn), entry, [entry, ends](std::int64_t rank) -> std::optional<Offer> {
            if (rank >= static_cast<std::int64_t>(ends.size())) return std::nullopt;
            auto r = static_cast<std::size_t>(rank);
            Box box = whole(entry.shape);
            box.offsets[0] = r == 0 ? 0 : ends[r - 1];
            box.sizes[0] = ends[r] - box.offsets[0];
            if (is_empty(box)) return std::nullopt;
            return Offer{box, entry.shape, box};
          }};
}

Mesh random_mesh(Dice& dice) {
  static const char* const kNames[] = {"pp", "dp_replicate", "dp_shard", "cp", "tp", "ep", "edp"};
  Mesh mesh;
  std::int64_t axes = 1 + dice.upto(3);
  std::int64_t first = dice.upto(2);
  for (std::int64_t i = 0; i < axes; ++i)
    mesh.axes.push_back({kNames[first + i], dice.from({1, 2, 2, 3, 4, 4, 8})});
  while (mesh.size() > 64) mesh.axes[static_cast<std::size_t>(dice.upto(axes - 1))].size = 1;
  return mesh;
}

std::vector<Placement> random_placements(const Mesh& mesh, std::int64_t ndim, Dice& dice) {
  std::vector<Placement> list;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    list.push_back(dice.one_in(3) ? Placement{} : sharded(dice.upto(ndim - 1)));
  // FSDP2's placement for a dim that a later axis splits too.
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    if (list[i].kind != Placement::Kind::kShard || !dice.one_in(2)) continue;
    for (std::size_t j = i + 1; j < list.size(); ++j) {
      if (list[j] != list[i]) continue;
      list[i] = strided(list[i].dim, mesh.axes[j].size);
      break;
    }
  }
  return list;
}

SpecEntry random_entry(const Mesh& mesh, Dice& dice) {
  while (true) {
    SpecEntry entry;
    std::int64_t ndim = 1 + dice.upto(2);
    for (std::int64_t d = 0; d < ndim; ++d)
      entry.shape.push_back(dice.from({1, 2, 3, 5, 6, 7, 8, 10, 12, 13, 16, 24, 32, 48}));
    entry.mesh = mesh;
    entry.placements = random_placements(mesh, ndim, dice);
    static const char* const kRoles[] = {"", "", "column", "row", "norm", "expert", "swiglu"};
    entry.role = kRoles[dice.upto(6)];
    if (execution_order_of_splits(mesh, entry.placements)) return entry;
  }
}

SavedModel random_healthy(std::uint32_t seed) {
  Dice dice(seed);
  Mesh mesh = random_mesh(dice);
  Mesh flat{{{"dp", mesh.size()}}};
  std::vector<SavedTensor> tensors;
  std::int64_t count = 1 + dice.upto(7);
  bool buckets = dice.one_in(5);
  static const char* const kStates[] = {"exp_avg", "exp_avg_sq", "master_param"};
  for (std::int64_t i = 0; i < count; ++i) {
    bool dense = dice.one_in(4);
    SpecEntry entry = random_entry(dense ? flat : mesh, dice);
    std::string name = "layers." + std::to_string(i) + (dice.one_in(3) ? ".weight0" : ".weight");
    bool in_bucket = buckets && dense;
    SavedTensor parameter =
        in_bucket ? bucket("model." + name, entry, dice) : honest("model." + name, entry);
    tensors.push_back(parameter);
    if (dice.one_in(2)) continue;
    for (const char* state : kStates) {
      SavedTensor copy = parameter;
      copy.fqn = "optimizer.state." + name + "." + state;
      tensors.push_back(copy);
    }
    SpecEntry step;
    tensors.push_back({"optimizer.state." + name + ".step", step, [](std::int64_t) {
                         return Offer{{}, {}, {}};
                       }});
  }
  return save(tensors, mesh.size(), dice.one_in(4));
}

SavedModel broken_plain_states(Dice& dice) {
  std::int64_t dp = dice.from({2, 3, 4, 8}), tp = dice.from({1, 1, 2});
  Mesh mesh{{{"dp", dp}, {"tp", tp}}};
  std::vector<SavedTensor> tensors, states;
  bool by_index = dice.one_in(3);
  for (std::int64_t i = 0; i < 2 + dice.upto(4); ++i) {
    SpecEntry entry;
    entry.mesh = mesh;
    entry.shape = {rows(dice), 1 + dice.upto(5)};
    entry.placements = {tp == 1 ? sharded(0) : strided(0, tp), sharded(0)};
    if (dice.one_in(3)) entry.placements = {sharded(0), Placement{}};
    if (tp == 2 && dice.one_in(3)) {
      entry.shape = {rows(dice), rows(dice)};
      entry.placements = {sharded(0), sharded(1)};
    }
    std::string name = "layers." + std::to_string(i) + ".weight";
    tensors.push_back(honest("model." + name, entry));
    std::string key = by_index ? std::to_string(i) : name;
    for (const char* state : {"exp_avg", "exp_avg_sq", "master_param"})
      states.push_back(plain_state("optimizer.state." + key + "." + state, entry));
  }
  tensors.insert(tensors.end(), states.begin(), states.end());
  return save(tensors, mesh.size(), dice.one_in(4));
}

SavedModel broken_axis(Dice& dice, bool expert) {
  std::int64_t outer = dice.from({1, 2, 3, 4}), inner = dice.from({2, 2, 4});
  Mesh mesh = expert ? Mesh{{{"edp", outer}, {"ep", inner}}} : Mesh{{{"dp", outer}, {"tp", inner}}};
  std::vector<SavedTensor> tensors;
  if (dice.one_in(2)) {
    SpecEntry scalar;
    tensors.push_back({"model.tiny", scalar, [](std::int64_t) { return Offer{{}, {}, {}}; }});
  }
  std::int64_t count = 1 + dice.upto(3);
  for (std::int64_t i = 0; i < count; ++i) {
    SpecEntry entry;
    entry.mesh = mesh;
    entry.shape = {outer * inner * (1 + dice.upto(3)), inner * (1 + dice.upto(3))};
    entry.placements = {strided(0, inner), sharded(0)};
    if (expert && dice.one_in(2)) entry.placements = {sharded(0), sharded(0)};
    if (dice.one_in(3)) entry.placements = {sharded(0), sharded(1)};
    entry.role = expert ? "expert" : entry.placements[1].dim == 1 ? "row" : "column";
    std::string name = "model.layers." + std::to_string(i) + (expert ? ".fc1.weight0" : ".weight");
    tensors.push_back(without(name, entry, 1));
    SpecEntry norm;
    norm.mesh = mesh;
    norm.shape = {rows(dice)};
    norm.placements = {sharded(0), Placement{}};
    norm.role = "norm";
    tensors.push_back(honest("model.layers." + std::to_string(i) + ".norm.weight", norm));
  }
  return save(tensors, mesh.size(), dice.one_in(4));
}

// All axes are there, recorded in another order than they cut.
SavedModel broken_order(Dice& dice, bool expert) {
  std::int64_t outer = dice.from({2, 3, 4}), inner = dice.from({2, 4});
  Mesh mesh = expert ? Mesh{{{"edp", outer}, {"ep", inner}}} : Mesh{{{"dp", outer}, {"tp", inner}}};
  std::vector<SavedTensor> tensors;
  std::int64_t count = 1 + dice.upto(3);
  for (std::int64_t i = 0; i < count; ++i) {
    SpecEntry entry;
    entry.mesh = mesh;
    entry.shape = {outer * inner * (1 + dice.upto(3)), 1 + dice.upto(3)};
    entry.placements = {strided(0, inner), sharded(0)};
    if (expert && dice.one_in(2)) entry.placements = {sharded(0), sharded(0)};
    entry.role = expert ? "expert" : "column";
    std::vector<Placement> recorded = as_plain_placements(entry.placements);
    if (recorded == entry.placements) recorded = {strided(0, inner), sharded(0)};
    tensors.push_back({"model.layers." + std::to_string(i) + ".fc1.weight0", entry,
                       [entry, recorded](std::int64_t rank) -> std::optional<Offer> {
                         auto truth =
                             box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, rank);
                         auto box = box_of_nested_splits(entry.shape, *entry.mesh, recorded, rank);
                         return Offer{*box, entry.shape, *truth};
                       }});
    SpecEntry norm;
    norm.mesh = mesh;
    norm.shape = {rows(dice)};
    norm.placements = {sharded(0), Placement{}};
    tensors.push_back(honest("model.layers." + std::to_string(i) + ".norm.weight", norm));
  }
  return save(tensors, mesh.size(), dice.one_in(4));
}

// S2: T tensor-parallel ranks, F owners of equal rows; the other states are plain as well.
SavedModel broken_glu(Dice& dice) {
  std::int64_t tp = dice.from({1, 1, 2, 4}),
               owners = tp == 1 ? dice.from({2, 4}) : dice.from({1, 2});
  std::int64_t unit = 2 * owners * tp * (1 + dice.upto(2));  // rows of one half, one tp rank
  Mesh mesh{{{"dp", owners}, {"tp", tp}}};
  std::vector<SavedTensor> tensors, states;
  for (std::int64_t layer = 0; layer < 1 + dice.upto(2); ++layer) {
    std::string stem = "decoder.layers." + std::to_string(layer) + ".mlp.linear_fc1.weight";
    SpecEntry half;
    half.mesh = mesh;
    half.shape = {unit * tp, 1 + dice.upto(3)};
    half.placements = {tp == 1 ? sharded(0) : strided(0, tp), tp == 1 ? Placement{} : sharded(0)};
    half.role = "swiglu";
    // The item of a TP rank is [W; V], 2 unit rows; owner f holds the f-th of `owners` parts.
    std::int64_t own = 2 * unit / owners;
    auto model_half = [=](std::int64_t which) {
      return [=](std::int64_t rank) -> std::optional<Offer> {
        std::int64_t f = rank / tp, t = rank % tp;
        std::int64_t begin = std::max(f * own, which * unit),
                     end = std::min((f + 1) * own, (which + 1) * unit);
        if (begin >= end) return std::nullopt;
        Box box = whole(half.shape);
        box.offsets[0] = t * unit + begin - which * unit;
        box.sizes[0] = end - begin;
        return Offer{box, half.shape, box};
      };
    };
    tensors.push_back({"model.module." + stem + "_w", half, model_half(0)});
    tensors.push_back({"model.module." + stem + "_v", half, model_half(1)});
    // Buggy: the first owner cuts own / tp rows in two halves.
    std::int64_t q = own / tp / 2;
    auto state_half = [=](std::int64_t which) {
      return [=](std::int64_t rank) -> std::optional<Offer> {
        std::int64_t f = rank / tp, t = rank % tp;
        if (f != 0 || q == 0) return std::nullopt;
        Box box = whole(half.shape), truth = box;
        box.offsets[0] = t * q;
        truth.offsets[0] = t * unit + which * q;
        box.sizes[0] = truth.sizes[0] = q;
        Extents size = half.shape;
        size[0] = q * tp;
        return Offer{box, size, truth};
      };
    };
    for (const char* kind : {".exp_avg", ".exp_avg_sq"}) {
      std::string name = "optimizer.state.module.module.module." + stem;
      states.push_back({name + "_w" + kind, half, state_half(0)});
      states.push_back({name + "_v" + kind, half, state_half(1)});
    }
    SpecEntry other;
    other.mesh = mesh;
    other.shape = {rows(dice) * tp, 1 + dice.upto(3)};
    other.placements = half.placements;
    std::string name = "decoder.layers." + std::to_string(layer) + ".linear_qkv.weight";
    tensors.push_back(honest("model.module." + name, other));
    for (const char* kind : {".exp_avg", ".exp_avg_sq"})
      states.push_back(plain_state("optimizer.state.module.module.module." + name + kind, other));
  }
  tensors.insert(tensors.end(), states.begin(), states.end());
  return save(tensors, mesh.size(), dice.one_in(4));
}

}  // namespace

TEST_CASE("five hundred healthy layouts raise nothing above info, with and without a spec") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    SavedModel model = random_healthy(seed);
    CAPTURE(seed);
    CAPTURE(describe(model));
    CHECK(above_info(look(model, true)) == "");
    CHECK(above_info(look(model, false)) == "");
  }
}

TEST_CASE("a thousand broken layouts: the right cause first, every survivor in its place") {
  Tally tallies[] = {
      run("glu-split-local", 150, 1000, broken_glu),
      run("local-saved-as-global", 250, 2000, broken_plain_states),
      run("axis-dropped", 200, 3000, [](Dice& dice) { return broken_axis(dice, true); }),
      run("axis-dropped", 200, 4000, [](Dice& dice) { return broken_axis(dice, false); }),
      run("topology-locked", 100, 5000, [](Dice& dice) { return broken_order(dice, true); }),
      run("strided-recorded-plain", 100, 6000,
          [](Dice& dice) { return broken_order(dice, false); }),
  };
  for (const Tally& tally : tallies) {
    CAPTURE(tally.rule);
    CAPTURE(tally.missed);
    CAPTURE(tally.named);
    CHECK(tally.damaged != 0);
    CHECK(tally.diagnoses == tally.damaged);
    CHECK(tally.named * 100 >= tally.all * 99);
  }
}
