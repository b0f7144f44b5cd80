// A mesh's axes can be given in any order, and one order is that of the save. For every order in
// the spec and in --mesh, and every placement: no repair puts a row where its rank did not have it,
// and a tensor that contradicts the given order is named.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/facts/layout/rank_orders.h"
#include "core/rules/layouts.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::size_t kWhole = 9;  // an axis that cuts no dim

// The dimension that each axis of the true mesh cuts, and whether the later of two cuts first.
struct TensorSplit {
  std::vector<std::size_t> dims;
  bool last_first = false;
};

std::vector<Mesh> every_order(const Mesh& mesh) {
  std::vector<std::size_t> at(mesh.axes.size());
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = i;
  std::vector<Mesh> out;
  do {
    Mesh order;
    for (std::size_t i : at) order.axes.push_back(mesh.axes[i]);
    out.push_back(std::move(order));
  } while (std::next_permutation(at.begin(), at.end()));
  return out;
}

std::size_t place_of(const Mesh& mesh, const MeshAxis& axis) {
  return static_cast<std::size_t>(std::find(mesh.axes.begin(), mesh.axes.end(), axis) -
                                  mesh.axes.begin());
}

// The same split in the same order, on a mesh whose axes are in another order; at most two axes
// split one dim.
SpecEntry written_on(const Mesh& mesh, const Mesh& truth, const TensorSplit& cut, Extents shape,
                     const std::string& role) {
  SpecEntry entry;
  entry.mesh = mesh;
  entry.shape = std::move(shape);
  entry.role = role;
  entry.placements.resize(mesh.axes.size());
  for (std::size_t i = 0; i < cut.dims.size(); ++i) {
    if (cut.dims[i] == kWhole) continue;
    std::size_t here = place_of(mesh, truth.axes[i]);
    entry.placements[here] = sharded(static_cast<std::int64_t>(cut.dims[i]));
    for (std::size_t j = 0; j < cut.dims.size(); ++j) {
      if (j == i || cut.dims[j] != cut.dims[i]) continue;
      bool cuts_first = cut.last_first ? i > j : i < j;
      // This axis comes before the one that cuts first.
      if (!cuts_first && here < place_of(mesh, truth.axes[j]))
        entry.placements[here] =
            strided(static_cast<std::int64_t>(cut.dims[i]), truth.axes[j].size);
    }
  }
  return entry;
}

bool writable(const TensorSplit& cut) {
  for (std::size_t dim : {0, 1}) {
    if (std::count(cut.dims.begin(), cut.dims.end(), dim) > 2) return false;
  }
  return true;
}

enum class Damage : std::uint8_t { kNone, kAxisLeftOut, kOtherOrder, kLocalState };

// One or more tensors in question next to a healthy one, saved on `truth`.
SavedModel saved_on(const Mesh& truth, const Mesh& of_spec, const TensorSplit& cut, Damage damage,
                    const TensorSplit& beside, const std::string& role, int healthy = 1) {
  std::int64_t rows = 2;
  for (const MeshAxis& axis : truth.axes) rows *= axis.size;
  const Extents shape = {rows, rows};
  auto tensor = [&](const std::string& name, const TensorSplit& one, Damage how) {
    SpecEntry entry = written_on(truth, truth, one, shape, role);
    SavedTensor out = honest(name, entry);
    if (how == Damage::kAxisLeftOut) {
      auto axis = std::find_if(one.dims.rbegin(), one.dims.rend(),
                               [](std::size_t dim) { return dim != kWhole; });
      if (axis != one.dims.rend())
        out = without(name, entry, static_cast<std::size_t>(one.dims.rend() - axis) - 1);
    } else if (how == Damage::kOtherOrder) {
      SpecEntry other = written_on(truth, truth, {one.dims, !one.last_first}, shape, role);
      out.offer = [entry, other](std::int64_t rank) -> std::optional<Offer> {
        auto box = box_of_nested_splits(entry.shape, *other.mesh, other.placements, rank);
        auto held = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, rank);
        return Offer{*box, entry.shape, *held};
      };
    } else if (how == Damage::kLocalState) {
      out = plain_state(name, entry);
    }
    out.entry = written_on(of_spec, truth, one, shape, role);
    return out;
  };
  const bool is_state = damage == Damage::kLocalState;
  std::vector<SavedTensor> tensors = {
      tensor("model.layers.0.fc1.weight", cut, is_state ? Damage::kNone : damage)};
  for (int i = 0; i < healthy; ++i)
    tensors.push_back(
        tensor("model.layers." + std::to_string(i) + ".beside.weight", beside, Damage::kNone));
  if (is_state) {
    for (const char* state : {"exp_avg", "exp_avg_sq"})
      tensors.push_back(tensor("optimizer.state.layers.0.fc1.weight." + std::string(state), cut,
                               Damage::kLocalState));
  }
  return save(tensors, truth.size());
}

// The slow way: are all chunks where the spec puts them if ranks are counted by `order`?
bool lies_on(const SavedModel& model, TensorId tensor, const Mesh& order) {
  const Checkpoint& c = *model.checkpoint;
  const SpecEntry& entry = *model.spec->find(c.fqn(tensor));
  for (ChunkId chunk : c.chunks(tensor)) {
    auto at = order.coordinates(*c.writer(chunk));
    std::vector<std::int64_t> mine;
    for (const MeshAxis& axis : entry.mesh->axes) mine.push_back(at[place_of(order, axis)]);
    auto box =
        box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, entry.mesh->rank(mine));
    if (*box != Box{copy_of(c.offsets(chunk)), copy_of(c.sizes(chunk))}) return false;
  }
  return true;
}

std::string why_undecided(const Finding& finding) {
  for (const auto& [key, value] : finding.evidence) {
    if (key == "undecided") return std::get<std::string>(value);
  }
  return {};
}

struct Sweep {
  int repairs = 0, contradicted = 0, kept = 0, by_own_tensors = 0;
};

// With the spec alone. If no tensor contradicts its order, the spec is the only source.
void judge_alone(const SavedModel& model, Sweep& sweep) {
  CAPTURE(describe(model));
  const std::vector<Finding> findings = look(model, true, Look::kMetadata);
  if (std::none_of(findings.begin(), findings.end(),
                   [](const Finding& one) { return one.rule == "mesh-contradicted"; }))
    return;
  bool is_repaired = false;
  for (const Finding& finding : findings) {
    CAPTURE(finding.cause);
    judge(model, finding);
    is_repaired = is_repaired || !finding.diagnoses.empty();
  }
  sweep.by_own_tensors += is_repaired ? 1 : 0;
}

void judge_with(const SavedModel& model, const Mesh& given, const Mesh& truth, Sweep& sweep) {
  const Checkpoint& c = *model.checkpoint;
  CAPTURE(describe(model));
  CAPTURE(to_text(given));
  std::set<std::string> contradicting;
  for (const Finding& finding : look(model, true, Look::kMetadata, &given)) {
    CAPTURE(finding.cause);
    judge(model, finding);
    sweep.repairs += finding.diagnoses.empty() ? 0 : 1;
    if (finding.rule == "mesh-contradicted" && finding.severity == Severity::kWarning)
      contradicting.insert(finding.subjects.begin(), finding.subjects.end());
  }
  if (given == truth) return;
  sweep.contradicted += contradicting.empty() ? 0 : 1;
  sweep.kept += contradicting.empty() ? 1 : 0;
  // The spec has the true order here: tensors that match it but not the given order contradict the
  // latter.
  if (*model.spec->entries.begin()->second.mesh != truth) return;
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    const SpecEntry& entry = *model.spec->find(c.fqn(TensorId{t}));
    if (!same(entry.shape, c.shape(TensorId{t})) || c.chunks(TensorId{t}).size() < 2) continue;
    bool says = lies_on(model, TensorId{t}, truth) && !lies_on(model, TensorId{t}, given);
    if (says) CHECK(contradicting.contains(std::string(c.fqn(TensorId{t}))));
  }
}

Sweep sweep_orders(const Mesh& truth, const std::string& role) {
  Sweep sweep;
  std::vector<TensorSplit> cuts;
  std::vector<std::size_t> digits(truth.axes.size(), 0);
  auto next = [&] {
    for (std::size_t& digit : digits) {
      if (++digit < 3) return true;
      digit = 0;
    }
    return false;
  };
  do {
    for (bool last_first : {false, true}) {
      TensorSplit cut{{}, last_first};
      for (std::size_t digit : digits) cut.dims.push_back(digit == 2 ? kWhole : digit);
      if (writable(cut)) cuts.push_back(std::move(cut));
    }
  } while (next());
  std::size_t turn = 0;
  for (const TensorSplit& cut : cuts) {
    for (Damage damage :
         {Damage::kNone, Damage::kAxisLeftOut, Damage::kOtherOrder, Damage::kLocalState}) {
      // The other tensor proves nothing, a little, or everything, in turn.
      const TensorSplit& beside = cuts[turn++ % cuts.size()];
      for (const Mesh& other : every_order(truth)) {
        judge_with(saved_on(truth, truth, cut, damage, beside, role), other, truth, sweep);
        const SavedModel written = saved_on(truth, other, cut, damage, beside, role);
        judge_with(written, truth, truth, sweep);
        judge_alone(written, sweep);
      }
    }
  }
  return sweep;
}

}  // namespace

TEST_CASE("no order of the axes in the spec or in --mesh puts a row where its rank held another") {
  struct Row {
    const char* mesh;
    const char* role;
  };
  for (const Row& row :
       {Row{"dp=2,tp=2", "column"}, Row{"dp=3,tp=2", "column"}, Row{"edp=2,ep=2", "expert"},
        Row{"edp=2,ep=3", "expert"}, Row{"dp_replicate=2,dp_shard=2,tp=2", "column"},
        Row{"edp=2,ep=3,etp=2", "expert"}}) {
    CAPTURE(std::string(row.mesh));
    Sweep sweep = sweep_orders(parse_mesh(row.mesh).value(), row.role);
    CHECK(sweep.repairs > 0);
    CHECK(sweep.contradicted > 0);
    CHECK(sweep.kept > 0);
    CHECK(sweep.by_own_tensors > 0);
  }
}

TEST_CASE("a mesh that one tensor contradicts mends no other one and names that tensor") {
  // The embedding knows the order; the matrix lost its tensor-parallel axis, and writers that fit
  // both orders kept its halves.
  const Mesh truth = parse_mesh("dp=2,tp=2").value(), given = parse_mesh("tp=2,dp=2").value();
  const TensorSplit column{{0, 0}, true}, embedding{{kWhole, 0}, false};
  SavedModel model = saved_on(truth, truth, column, Damage::kAxisLeftOut, embedding, "column");
  std::vector<Finding> right = look(model, true, Look::kMetadata, &truth);
  REQUIRE(right.front().rule == "axis-dropped");
  CHECK(right.front().diagnoses.size() == 1);
  std::vector<Finding> findings = look(model, true, Look::kMetadata, &given);
  auto told = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.rule == "mesh-contradicted";
  });
  REQUIRE(told != findings.end());
  CHECK(told->severity == Severity::kWarning);
  CHECK(told->subjects == std::vector<std::string>{"model.layers.0.beside.weight"});
  CHECK(told->cause.find("counted over dp 2 x tp 2, and elsewhere") != std::string::npos);
  for (const Finding& finding : findings) judge(model, finding);
}

TEST_CASE("a mesh in the order that did not save is named where damage hides who cut first") {
  const Mesh truth = parse_mesh("dp=2,tp=2").value(), given = parse_mesh("tp=2,dp=2").value();
  const TensorSplit column{{0, kWhole}, false}, replica{{kWhole, kWhole}, false};
  SavedModel model = saved_on(truth, truth, column, Damage::kLocalState, replica, "column");
  const std::vector<Finding> findings = look(model, true, Look::kMetadata, &given);
  for (const Finding& finding : findings) judge(model, finding);
  auto told = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.rule == "mesh-contradicted";
  });
  REQUIRE(told != findings.end());
  CHECK(told->severity == Severity::kWarning);
}

TEST_CASE("a spec whose axes are in another order than those that saved places nothing") {
  const Mesh truth = parse_mesh("dp=2,tp=2").value(), of_spec = parse_mesh("tp=2,dp=2").value();
  const TensorSplit column{{0, 0}, true}, embedding{{kWhole, 0}, false};
  SavedModel model = saved_on(truth, of_spec, column, Damage::kAxisLeftOut, embedding, "column");
  std::vector<Finding> findings = look(model, true);
  REQUIRE_FALSE(findings.empty());
  CHECK(findings.front().rule == "axis-dropped");
  CHECK(findings.front().diagnoses.empty());
  CHECK(why_undecided(findings.front()).find("differently from the mesh tp 2 x dp 2") !=
        std::string::npos);
  auto told = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.rule == "mesh-contradicted";
  });
  REQUIRE(told != findings.end());
  CHECK(told->severity == Severity::kInfo);
  CHECK(told->subjects == std::vector<std::string>{"model.layers.0.beside.weight"});
  // With the right mesh given there is a repair.
  findings = look(model, true, Look::kMetadata, &truth);
  REQUIRE(findings.front().rule == "axis-dropped");
  CHECK(findings.front().diagnoses.size() == 1);
  judge(model, findings.front());
}

TEST_CASE("ranks are counted in the order on which two tensors agree where the spec has another") {
  const Mesh truth = parse_mesh("tp=2,dp=3").value(), of_spec = parse_mesh("dp=3,tp=2").value();
  const TensorSplit rows{{kWhole, 0}, false}, grid{{1, 0}, false};
  SavedModel model = saved_on(truth, of_spec, rows, Damage::kLocalState, grid, "");
  const std::vector<Finding> alone = look(model, true);
  const std::vector<Finding> named = look(model, true, Look::kMetadata, &truth);
  REQUIRE(named.front().rule == "local-saved-as-global");
  REQUIRE_FALSE(named.front().diagnoses.empty());
  REQUIRE(alone.front().rule == named.front().rule);
  CHECK(alone.front().cause == named.front().cause);
  CHECK(alone.front().diagnoses.size() == named.front().diagnoses.size());
  judge(model, alone.front());
  auto told = std::find_if(alone.begin(), alone.end(), [](const Finding& finding) {
    return finding.rule == "mesh-contradicted";
  });
  REQUIRE(told != alone.end());
  CHECK(told->severity == Severity::kInfo);
  CHECK(told->cause.find("so the order that these tensors show was used") != std::string::npos);
}

TEST_CASE("swapped rows are found where the spec has its axes in another order than who saved") {
  const Mesh truth = parse_mesh("tp=2,dp=3").value(), of_spec = parse_mesh("dp=3,tp=2").value();
  const TensorSplit column{{0, 0}, false}, grid{{1, 0}, false};
  auto of = [&](Damage damage) {
    return look(saved_on(truth, of_spec, column, damage, grid, "column", 2), true);
  };
  const std::vector<Finding> sound = of(Damage::kNone), swapped = of(Damage::kOtherOrder);
  CHECK(above_info(sound).empty());
  REQUIRE(swapped.front().rule == "strided-recorded-plain");
  CHECK(swapped.front().subjects == std::vector<std::string>{"model.layers.0.fc1.weight"});
  REQUIRE(swapped.front().diagnoses.size() == 1);
  judge(saved_on(truth, of_spec, column, Damage::kOtherOrder, grid, "column", 2), swapped.front());
}

TEST_CASE("rows that are right by the spec's own order speak against the order of the others") {
  // On two by two they may be right, with the tiles of the others at each other's places, or the
  // others are, with these rows swapped.
  const Mesh truth = parse_mesh("tp=2,dp=2").value(), of_spec = parse_mesh("dp=2,tp=2").value();
  const TensorSplit column{{0, 0}, false}, grid{{1, 0}, false};
  const SavedModel model = saved_on(truth, of_spec, column, Damage::kOtherOrder, grid, "column", 2);
  const std::vector<Finding> findings = look(model, true);
  CHECK(above_info(findings).empty());
  REQUIRE_FALSE(findings.empty());
  CHECK(findings.front().rule == "mesh-contradicted");
  CHECK(findings.front().cause.find("its mesh was not used") != std::string::npos);
}

TEST_CASE("an order of ranks that tensors alone tell is listed under what was not checked") {
  const Mesh truth = parse_mesh("tp=2,dp=3").value(), of_spec = parse_mesh("dp=3,tp=2").value();
  const TensorSplit grid{{1, 0}, false};
  const SavedModel model = saved_on(truth, of_spec, grid, Damage::kNone, grid, "column");
  auto unjudged = [&](const std::optional<Mesh>& named) {
    std::string text;
    CheckOptions options{Depth::kMetadata, model.spec, std::nullopt};
    options.mesh = named;
    auto report = check(*model.checkpoint, options, nullptr);
    REQUIRE(report.has_value());
    for (const auto& item : report->unjudged) text += item.what + ": " + item.needs + "\n";
    return text;
  };
  CHECK(
      unjudged(std::nullopt).find("the order of the ranks, taken from where tensors are: --mesh") !=
      std::string::npos);
  CHECK(unjudged(truth).find("the order of the ranks") == std::string::npos);
}

TEST_CASE("tensors that are by two orders of the spec's axes count the ranks by neither") {
  const Mesh truth = parse_mesh("tp=2,dp=2").value(), of_spec = parse_mesh("dp=2,tp=2").value();
  const TensorSplit column{{0, 0}, false}, grid{{1, 0}, false};
  SavedModel model = saved_on(truth, of_spec, column, Damage::kOtherOrder, grid, "column", 3);
  // One of the three tensors is expected where the spec's own order puts it.
  SpecEntry& other = model.spec->entries.at("model.layers.2.beside.weight");
  std::swap(other.placements[0], other.placements[1]);
  const std::vector<Finding> findings = look(model, true);
  CHECK(above_info(findings).empty());
  REQUIRE_FALSE(findings.empty());
  CHECK(findings.front().rule == "mesh-contradicted");
  CHECK(findings.front().cause.find("its mesh was not used") != std::string::npos);
}

TEST_CASE("a spec whose axes are in another order is not asked for again") {
  const Mesh truth = parse_mesh("tp=2,dp=3").value(), of_spec = parse_mesh("dp=3,tp=2").value();
  const TensorSplit rows{{kWhole, 0}, false}, replica{{kWhole, kWhole}, false};
  SavedModel model = saved_on(truth, of_spec, rows, Damage::kLocalState, replica, "");
  std::vector<Finding> findings = look(model, true);
  REQUIRE_FALSE(findings.empty());
  REQUIRE(findings.front().rule == "local-saved-as-global");
  const std::string why = why_undecided(findings.front());
  CHECK(why.find("or a spec") == std::string::npos);
  CHECK(why.find("differently from the mesh dp 3 x tp 2") != std::string::npos);
}
