// Layouts derived without a spec: from the router's rows, from sizes of a layer's matrices, and
// from neighbouring ranks; and cases in which nothing may be derived.
#include <doctest/doctest.h>

#include "core/rules/layouts.h"

using namespace shw;
using namespace shw::test;

namespace {

SavedTensor replicated(std::string fqn, Extents shape) {
  SpecEntry entry;
  entry.shape = shape;
  return {std::move(fqn), entry, [shape](std::int64_t) -> std::optional<Offer> {
            return Offer{whole(shape), shape, whole(shape)};
          }};
}

SpecEntry entry_on(const Mesh& mesh, Extents shape, std::vector<Placement> placements) {
  SpecEntry entry;
  entry.mesh = mesh;
  entry.shape = std::move(shape);
  entry.placements = std::move(placements);
  return entry;
}

// Experts of `mesh` (edp and ep in either order), FSDP on `dim`, saved without the expert axis: two
// keys, and a router with rows for all experts.
SavedModel experts(const Mesh& mesh, std::int64_t dim, bool broken, bool to_lowest = false,
                   bool tiny_first = false) {
  std::size_t ep = mesh.axes.front().name == "ep" ? 0 : 1;
  if (mesh.axes.size() == 1) ep = 0;
  std::int64_t count = mesh.axes[ep].size;
  std::vector<Placement> placements(mesh.axes.size(), sharded(dim));
  placements[ep] = sharded(0);
  std::vector<SavedTensor> tensors;
  if (tiny_first) tensors.push_back(replicated("model.tiny", {}));
  // Dense tensors are on all ranks, so that every rank wrote something.
  tensors.push_back(honest("model.norm.weight",
                           entry_on(Mesh{{{"dp", mesh.size()}}}, {mesh.size(), 2}, {sharded(0)})));
  tensors.push_back(replicated("model.layers.3.mlp.gate.weight", {2 * count, 8}));
  for (const char* i : {"0", "1"}) {
    std::string stem = "model.layers.3.mlp.experts.";
    SpecEntry first = entry_on(mesh, {count * 12, 8}, placements);
    SpecEntry second = entry_on(mesh, {count * 8, 12}, placements);
    first.role = second.role = "expert";
    for (auto& [name, entry] :
         {std::pair{stem + "fc1.weight" + i, first}, std::pair{stem + "fc2.weight" + i, second}})
      tensors.push_back(broken ? without(name, entry, ep) : honest(name, entry));
  }
  return save(tensors, mesh.size(), to_lowest);
}

std::string undecided(const Finding& finding) {
  for (const auto& [key, value] : finding.evidence) {
    if (key == "undecided") return std::get<std::string>(value);
  }
  return "";
}

void must_place(const SavedModel& model, const Mesh* mesh, std::size_t tensors) {
  CAPTURE(describe(model));
  std::vector<Finding> findings = look(model, false, Look::kMetadata, mesh);
  REQUIRE_FALSE(findings.empty());
  const Finding& finding = findings.front();
  CAPTURE(finding.cause);
  CHECK(finding.rule == "axis-dropped");
  CHECK(finding.severity == Severity::kError);
  CHECK(finding.diagnoses.size() == tensors);
  judge(model, finding);
  for (const Finding& other : findings)
    CHECK((other.severity == Severity::kInfo || other.rule == "axis-dropped" ||
           other.rule == "writer-mosaic"));
}

void must_tell(const SavedModel& model, const std::string& rule, const std::string& words) {
  CAPTURE(describe(model));
  std::vector<Finding> findings = look(model, false);
  REQUIRE_FALSE(findings.empty());
  CHECK(findings.front().rule == rule);
  CHECK(findings.front().severity == Severity::kWarning);
  CHECK_FALSE(findings.front().remedy.has_value());
  CHECK(undecided(findings.front()).find(words) != std::string::npos);
  for (const Finding& finding : findings) CHECK(finding.diagnoses.empty());
}

// A dense layer with the names of Megatron or TE. `tp_axis`: the part that is saved without that
// axis.
struct Dense {
  Mesh mesh;
  std::size_t tp = 1;
  bool all = false;  // E1: every matrix; otherwise 0.7.12: gate halves and output layer
  bool broken = true;
  std::int64_t layers = 2, part = 2;
};
SavedModel dense(const Dense& wanted, bool to_lowest = false) {
  const Mesh& mesh = wanted.mesh;
  std::int64_t t = mesh.axes[wanted.tp].size, ranks = mesh.size();
  std::int64_t ffn = ranks * wanted.part * 2, hidden = ranks * wanted.part, words = 4 * ranks;
  std::vector<Placement> column(mesh.axes.size()), row(mesh.axes.size()), norm(mesh.axes.size());
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    if (i == wanted.tp || mesh.axes[i].name == "dp_replicate") continue;
    column[i] = strided(0, t);
    row[i] = norm[i] = sharded(0);
  }
  column[wanted.tp] = sharded(0);
  row[wanted.tp] = sharded(1);
  std::vector<SavedTensor> tensors{replicated("model.tiny", {})};
  auto add = [&](const std::string& name, const SpecEntry& entry, bool short_too) {
    bool breaks = wanted.broken && short_too;
    tensors.push_back(breaks ? without(name, entry, wanted.tp) : honest(name, entry));
  };
  // An embedding that is cut by the axis would reveal it.
  if (!wanted.all)
    add("model.embedding.word_embeddings.weight", entry_on(mesh, {words, hidden}, column), false);
  for (std::int64_t layer = 0; layer < wanted.layers; ++layer) {
    std::string stem = "model.layers." + std::to_string(layer) + ".";
    if (wanted.all) {
      add(stem + "mlp.fc1.weight", entry_on(mesh, {ffn, hidden}, column), true);
      add(stem + "mlp.fc1.bias", entry_on(mesh, {ffn}, column), true);
      add(stem + "mlp.fc2.weight", entry_on(mesh, {hidden, ffn}, row), true);
    } else {
      add(stem + "mlp.linear_fc1.weight_w", entry_on(mesh, {ffn, hidden}, column), true);
      add(stem + "mlp.linear_fc1.weight_v", entry_on(mesh, {ffn, hidden}, column), true);
      add(stem + "mlp.linear_fc2.weight", entry_on(mesh, {hidden, ffn}, row), false);
    }
    add(stem + "norm.weight", entry_on(mesh, {hidden}, norm), false);
  }
  if (!wanted.all) add("model.output_layer.weight", entry_on(mesh, {words, hidden}, column), true);
  return save(tensors, ranks, to_lowest);
}

}  // namespace

TEST_CASE("F4.1: experts of one rank each are placed by the router's law, without a spec") {
  for (std::int64_t ep : {2, 3, 4, 8}) {
    for (bool to_lowest : {false, true}) {
      SavedModel model = experts(Mesh{{{"ep", ep}}}, 0, true, to_lowest);
      must_place(model, nullptr, 4);
      Mesh given{{{"edp", 1}, {"ep", ep}, {"etp", 1}}};
      must_place(model, &given, 4);
      CHECK(above_info(look(experts(Mesh{{{"ep", ep}}}, 0, false, to_lowest), false)) == "");
    }
  }
}

TEST_CASE("experts that FSDP cuts along another dimension are placed where the writers decide") {
  for (std::int64_t edp : {2, 4}) {
    for (std::int64_t ep : {2, 4}) {
      for (bool ep_first : {false, true}) {
        for (int variant = 0; variant < 4; ++variant) {
          Mesh mesh{{{"edp", edp}, {"ep", ep}}};
          if (ep_first) std::swap(mesh.axes[0], mesh.axes[1]);
          SavedModel model = experts(mesh, 1, true, variant % 2 == 1, variant / 2 == 1);
          CHECK(above_info(look(experts(mesh, 1, false), false)) == "");
          must_place(model, &mesh, 4);
          must_place(model, nullptr, 4);
        }
      }
    }
  }
}

TEST_CASE("the order of rows that FSDP cuts as well is the loader's choice, mesh or not") {
  Mesh mesh{{{"edp", 2}, {"ep", 2}}};
  SavedModel model = experts(mesh, 0, true);
  must_tell(model, "axis-dropped", "so a spec (--spec) is needed");
  std::vector<Finding> findings = look(model, false, Look::kMetadata, &mesh);
  REQUIRE_FALSE(findings.empty());
  CHECK(findings.front().diagnoses.empty());
  CHECK(undecided(findings.front()).find("--spec") != std::string::npos);
}

TEST_CASE("a mesh that does not fit the law or the writers places nothing") {
  SavedModel model = experts(Mesh{{{"ep", 4}}}, 0, true);
  for (const char* text : {"edp=2,ep=2", "ep=8", "dp=4", "dp=2,ep=4"}) {
    CAPTURE(std::string(text));
    Mesh mesh = parse_mesh(text).value();
    for (const Finding& finding : look(model, false, Look::kMetadata, &mesh))
      CHECK(finding.diagnoses.empty());
  }
}

TEST_CASE("a mesh with fewer ranks than wrote is reported and not used") {
  SavedModel model = experts(Mesh{{{"ep", 4}}}, 0, true);
  Mesh mesh = parse_mesh("ep=2").value();
  std::vector<Finding> findings = look(model, false, Look::kMetadata, &mesh);
  CHECK(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.rule == "mesh-contradicted" && finding.severity == Severity::kWarning;
  }));
}

TEST_CASE("keys that count all experts are not stacked: the law tells, and places nothing") {
  // Megatron-FSDP numbers all experts ("linear_fc1.weight7"): missing ones are missing keys.
  std::vector<SavedTensor> tensors{replicated("model.layers.3.mlp.router.weight", {4, 8})};
  for (const char* i : {"0", "1"}) {
    tensors.push_back(
        replicated(std::string("model.layers.3.mlp.experts.linear_fc1.weight") + i, {12, 8}));
    tensors.push_back(
        replicated(std::string("model.layers.3.mlp.experts.linear_fc2.weight") + i, {8, 12}));
  }
  must_tell(save(tensors, 2), "axis-dropped", "--spec");
}

TEST_CASE("0.7.12: gate halves and output layer saved as replicas next to intact siblings") {
  for (const char* text : {"fsdp=1,tp=2", "fsdp=2,tp=2", "fsdp=2,tp=4", "fsdp=3,tp=2"}) {
    for (bool to_lowest : {false, true}) {
      CAPTURE(std::string(text));
      Mesh mesh = parse_mesh(text).value();
      SavedModel model = dense({mesh, 1, false, true}, to_lowest);
      CAPTURE(describe(model));
      // With a spec: survivors placed, the rest masked, siblings untouched.
      std::vector<Finding> findings = look(model, true);
      REQUIRE_FALSE(findings.empty());
      CHECK(findings.front().rule == "axis-dropped");
      CHECK(findings.front().diagnoses.size() == 5);
      judge(model, findings.front());
      for (const Diagnosis& diagnosis : findings.front().diagnoses) {
        const auto& part = std::get<PartlyLost>(diagnosis);
        std::int64_t kept = 0;
        for (const RetainedChunk& retained_chunk : part.retained_chunks)
          kept += volume(retained_chunk.source.sizes).value_or(0);
        CHECK(kept * mesh.axes[1].size == volume(part.expected));
      }
      // Without a spec the second matrix gives the size, and the mesh places the chunks alike.
      must_tell(model, "axis-dropped", "--mesh");
      must_place(model, &mesh, 5);
      CHECK(above_info(look(dense({mesh, 1, false, false}, to_lowest), false)) == "");
      CHECK(above_info(look(dense({mesh, 1, false, false}, to_lowest), false, Look::kMetadata,
                            &mesh)) == "");
    }
  }
}

TEST_CASE(
    "E1: all matrices without the tensor-parallel axis need the mesh, and writers hint at it") {
  int hinted = 0;
  for (const char* text : {"dp=2,tp=2", "dp=4,tp=2", "dp=2,tp=4", "dp=3,tp=2"}) {
    for (std::int64_t layers : {1, 2, 3}) {
      for (bool to_lowest : {false, true}) {
        CAPTURE(std::string(text));
        Mesh mesh = parse_mesh(text).value();
        SavedModel model = dense({mesh, 1, true, true, layers}, to_lowest);
        must_place(model, &mesh, static_cast<std::size_t>(3 * layers));
        std::vector<Finding> findings = look(model, false);
        // FSDP on a mesh whose inner axis is cp writes exactly the same, so it is only a hint.
        CHECK(above_info(findings) == "");
        auto hint = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
          return finding.rule == "writer-mosaic";
        });
        // No hint if there is only one side, or if the boxes fit distant replicas.
        if (hint == findings.end()) continue;
        CHECK(undecided(*hint).find("--mesh") != std::string::npos);
        CHECK(hint->diagnoses.empty());
        CHECK_FALSE(to_lowest);
        ++hinted;
      }
    }
  }
  CHECK(hinted > 0);
}

TEST_CASE("healthy dense layers keep silent, whatever the mesh, with it and without") {
  for (const char* text :
       {"dp=2,tp=2", "dp=4,tp=2", "dp=1,tp=4", "dp_replicate=2,dp_shard=2,tp=2",
        "dp_replicate=2,dp_shard=3,tp=1", "dp_replicate=3,dp_shard=2,tp=2", "dp=6,tp=1"}) {
    for (bool all : {false, true}) {
      for (bool to_lowest : {false, true}) {
        CAPTURE(std::string(text));
        Mesh mesh = parse_mesh(text).value();
        SavedModel model = dense({mesh, mesh.axes.size() - 1, all, false}, to_lowest);
        CAPTURE(describe(model));
        CHECK(above_info(look(model, true)) == "");
        CHECK(above_info(look(model, false)) == "");
        CHECK(above_info(look(model, false, Look::kMetadata, &mesh)) == "");
      }
    }
  }
}

TEST_CASE("F4.3 with all experts in one key: another number of expert ranks is another order too") {
  SpecEntry entry = entry_on(parse_mesh("edp=2,ep=4").value(), {16, 3}, {sharded(0), sharded(0)});
  entry.role = "expert";
  SpecEntry saved = entry;
  saved.mesh = parse_mesh("edp=4,ep=2").value();
  SavedTensor tensor = honest("model.layers.3.mlp.experts.fc1.weight", saved);
  tensor.entry = entry;
  SavedModel model = save({tensor}, 8);
  std::vector<Finding> findings = look(model, true, Look::kMetadata, &*saved.mesh);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "topology-locked");
  REQUIRE(findings[0].diagnoses.size() == 1);
  const auto& blocks = std::get<BlocksPermuted>(findings[0].diagnoses[0]);
  // Computes, by a simple method, where row `row` of all experts in order is on a mesh.
  auto place = [](std::int64_t row, std::int64_t edp, std::int64_t ep) {
    std::int64_t mine = 16 / ep, part = mine / edp, e = row / mine, r = row % mine;
    return (r / part * ep + e) * part + r % part;
  };
  for (std::int64_t row = 0; row < 16; ++row) {
    std::int64_t to = place(row, 2, 4), from = place(row, 4, 2);
    std::int64_t block = blocks.order[static_cast<std::size_t>(to / blocks.block)];
    CHECK(block * blocks.block + to % blocks.block == from);
  }
  // A key of one rank's experts means other experts on another number of ranks, which cannot be
  // repaired.
  tensor.fqn += "0";
  for (const Finding& finding : look(save({tensor}, 8), true, Look::kMetadata, &*saved.mesh))
    CHECK(finding.diagnoses.empty());
}
