#include "make/snapshots.h"

#include "core/explain/explain.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/safetensors/safetensors_formats.h"
#include "core/model/builder.h"
#include "core/rules/consequence.h"

namespace shw::make {
namespace {

// Adds the plan's in-place information as the session does.
void note_in_place(const std::shared_ptr<Snapshot>& snapshot) {
  auto possible = check_in_place(*snapshot->checkpoint, *snapshot->plan);
  if (!possible) snapshot->not_in_place = possible.error();
}

constexpr std::int64_t kRanks = 64, kExpertShards = 2, kExperts = 32;

std::string file_of(std::int64_t rank) {
  return "__" + std::to_string(rank) + "_0.distcp";
}

// Items in sequence in each rank's file.
struct Writer {
  CheckpointBuilder& builder;
  std::vector<std::int64_t> at = std::vector<std::int64_t>(kRanks, 0);

  void chunk(ExtentsView offsets, ExtentsView sizes, std::int64_t rank, std::int64_t element) {
    std::int64_t length = volume(sizes).value_or(0) * element + 1'448;
    auto r = static_cast<std::size_t>(rank);
    builder.add_chunk(offsets, sizes, {builder.file(file_of(rank)), at[r], length});
    at[r] += (length + 511) / 512 * 512;
  }
  // Dim 0 over all ranks, as FSDP does.
  void sharded(const std::string& fqn, const Extents& shape) {
    builder.add_tensor(fqn, Dtype::kBfloat16, shape);
    for (std::int64_t rank = 0; rank < kRanks; ++rank) {
      Extents offsets(shape.size(), 0), sizes = shape;
      Cut cut{shape[0] / kRanks * rank, shape[0] / kRanks};
      offsets[0] = cut.offset;
      sizes[0] = cut.size;
      chunk(offsets, sizes, rank, 2);
    }
  }
  void replicated(const std::string& fqn, const Extents& shape) {
    builder.add_tensor(fqn, Dtype::kFloat32, shape);
    chunk(Extents(shape.size(), 0), shape, 0, 4);
  }
  // Experts over ep, `dim` over ep_shard.
  void experts(const std::string& fqn, const Extents& shape, std::size_t dim) {
    builder.add_tensor(fqn, Dtype::kBfloat16, shape);
    for (std::int64_t rank = 0; rank < kRanks; ++rank) {
      Extents offsets(3, 0), sizes = shape;
      sizes[0] = shape[0] / kExperts;
      offsets[0] = sizes[0] * (rank % kExperts);
      sizes[dim] = shape[dim] / kExpertShards;
      offsets[dim] = sizes[dim] * (rank / kExperts);
      chunk(offsets, sizes, rank, 2);
    }
  }
};

struct Moved {
  const char* name;
  Extents saved, expected;
};
const std::vector<Moved>& moved_tensors() {
  static const std::vector<Moved> moved{{"down_proj", {288, 8192, 640}, {288, 4096, 1280}},
                                        {"gate_proj", {288, 2560, 2048}, {288, 1280, 4096}},
                                        {"up_proj", {288, 2560, 2048}, {288, 1280, 4096}}};
  return moved;
}
std::string moved_fqn(const Moved& moved) {
  return std::string("model.layers.3.moe.experts.") + moved.name + ".weight";
}

std::shared_ptr<const Checkpoint> demo_checkpoint(bool repaired) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  Provenance provenance;
  provenance.torch = "2.14";
  builder.set_provenance(provenance);
  Writer writer{builder};
  writer.sharded("model.embed_tokens.weight", {4096, 512});
  std::uint32_t tensors = 1;
  for (int layer = 0; tensors < 1'139; ++layer) {
    std::string at = "model.layers." + std::to_string(layer);
    if (layer == 3) {
      for (const Moved& moved : moved_tensors())
        writer.experts(moved_fqn(moved), repaired ? moved.expected : moved.saved, repaired ? 2 : 1);
      tensors += 3;
    }
    for (const char* name :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "moe.gate", "moe.shared.down_proj", "moe.shared.gate_proj", "moe.shared.up_proj"}) {
      writer.sharded(at + "." + name + ".weight", {1024, 512});
      if (++tensors == 1'139) break;
    }
    for (const char* name : {"input_layernorm", "post_attention_layernorm"}) {
      if (tensors == 1'139) break;
      writer.replicated(at + "." + name + ".weight", {512});
      ++tensors;
    }
  }
  writer.replicated("model.norm.weight", {512});
  writer.sharded("model.lm_head.weight", {4096, 512});
  writer.replicated("model.rotary.inv_freq", {64});
  return builder.finish();
}

std::shared_ptr<const Spec> demo_spec(const Checkpoint& checkpoint) {
  auto spec = std::make_shared<Spec>();
  spec->source = "step_9000/spec.json";
  Mesh mesh{{{"ep_shard", kExpertShards}, {"ep", kExperts}}};
  for (const Moved& moved : moved_tensors()) {
    SpecEntry entry;
    entry.shape = moved.expected;
    entry.dtype = Dtype::kBfloat16;
    entry.mesh = mesh;
    entry.placements = {{Placement::Kind::kShard, 2, 1}, {Placement::Kind::kShard, 0, 1}};
    entry.role = "expert";
    spec->entries.emplace(moved_fqn(moved), entry);
  }
  Mesh flat{{{"dp", kRanks}}};
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    SpecEntry entry;
    entry.shape = copy_of(checkpoint.shape(TensorId{t}));
    entry.mesh = flat;
    entry.placements = {{Placement::Kind::kShard, 0, 1}};
    spec->entries.emplace(std::string(checkpoint.fqn(TensorId{t})), entry);
  }
  return spec;
}

Finding axis_moved(const Checkpoint& checkpoint) {
  Finding finding;
  finding.rule = "placement-axis-moved";
  finding.cause =
      "Dim 1 is twice as long as expected and dim 2 half as long: the shards were written after "
      "transposing dims 1 and 2, but recorded with the placements from before.";
  finding.evidence = {{"saved", Extents{288, 8192, 640}},
                      {"expected", Extents{288, 4096, 1280}},
                      {"factor", std::string("2 = ep_shard")},
                      {"tile", Extents{9, 4096, 640}},
                      {"recorded", std::string("Shard(1), Shard(0)")},
                      {"correct", std::string("Shard(2), Shard(0)")}};
  finding.remedy = Remedy{"relabel", true,
                          "Relabel 192 tiles in .metadata. No tensor byte moves; every tile keeps "
                          "its hash."};
  finding.link = "NeMo AutoModel #1691";
  for (const Moved& moved : moved_tensors()) {
    finding.subjects.push_back(moved_fqn(moved));
    finding.diagnoses.push_back(
        AxisMoved{*checkpoint.find(moved_fqn(moved)), 1, 2, 2, moved.expected});
  }
  return finding;
}

std::shared_ptr<Plan> demo_plan(const Checkpoint& checkpoint) {
  auto plan = std::make_shared<Plan>();
  plan->checkpoint = "step_9000";
  for (const Moved& moved : moved_tensors()) {
    Operation operation;
    operation.rule = "placement-axis-moved";
    operation.subjects = {moved_fqn(moved)};
    operation.text = "relabel 64 tiles: " + to_text(ExtentsView(moved.saved)) + " becomes " +
                     to_text(ExtentsView(moved.expected));
    operation.tiles = 64;
    plan->operations.push_back(operation);
    PlannedTensor tensor;
    tensor.tensor = *checkpoint.find(moved_fqn(moved));
    tensor.shape = moved.expected;
    for (ChunkId chunk : checkpoint.chunks(tensor.tensor)) {
      auto at = checkpoint.offsets(chunk), size = checkpoint.sizes(chunk);
      PlannedChunk planned;
      planned.box = {{at[0], 0, at[1] / size[1] * size[2]}, copy_of(size)};
      planned.item = chunk;
      tensor.chunks.push_back(planned);
    }
    plan->tensors.push_back(std::move(tensor));
  }
  return plan;
}

std::shared_ptr<Snapshot> with_report(std::shared_ptr<const Checkpoint> checkpoint,
                                      std::vector<Finding> findings) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->revision = 1;
  snapshot->options.checkpoint = "/runs/7/step_9000";
  snapshot->checkpoint = std::move(checkpoint);
  auto report = std::make_shared<CheckReport>();
  report->depth = Depth::kHeaders;
  report->deeper =
      "reading every byte can still find broken checksums and values that are not finite";
  report->verdict = Verdict::kClean;
  for (Finding& finding : findings) {
    finding.consequence = consequence_of(finding, *snapshot->checkpoint);
    if (finding.severity != Severity::kInfo) report->verdict = Verdict::kFindings;
  }
  report->findings = std::move(findings);
  snapshot->report = report;
  return snapshot;
}

}  // namespace

std::shared_ptr<Snapshot> demo() {
  auto checkpoint = demo_checkpoint(false);
  auto snapshot = with_report(checkpoint, {axis_moved(*checkpoint)});
  snapshot->spec = demo_spec(*checkpoint);
  snapshot->finding = 0;
  snapshot->tensor = checkpoint->find(moved_fqn(moved_tensors()[0]));
  auto order = std::make_shared<std::vector<std::uint32_t>>();
  for (const Moved& moved : moved_tensors())
    order->push_back(static_cast<std::uint32_t>(*checkpoint->find(moved_fqn(moved))));
  snapshot->order = order;
  snapshot->filter = "finding:*";
  return snapshot;
}

std::shared_ptr<Snapshot> demo_planned() {
  auto snapshot = demo();
  snapshot->plan = demo_plan(*snapshot->checkpoint);
  note_in_place(snapshot);
  auto first = snapshot->checkpoint->chunks(*snapshot->tensor).first;
  snapshot->chunk = ChunkId{first + 33};
  return with_target(snapshot);
}

std::shared_ptr<Snapshot> demo_explained(const std::string& report) {
  auto snapshot = std::make_shared<Snapshot>(*demo_planned());
  auto explained = std::make_shared<ExplainedText>();
  explained->text =
      "Size mismatch between saved torch.Size([288, 8192, 640]) and current: torch.Size([288, "
      "4096, 1280])";
  explained->explanation = explain(explained->text);
  snapshot->explained = explained;
  snapshot->written =
      std::make_shared<const verbs::WrittenReport>(verbs::WrittenReport{report, 198'577});
  return snapshot;
}

std::shared_ptr<Snapshot> demo_repaired(bool verified) {
  auto snapshot = demo_planned();
  snapshot->repaired = std::make_shared<RepairResult>(RepairResult{
      "/runs/7/step_9000-repaired", "/runs/7/step_9000-repaired/certificate.json", true});
  PlanEdit executed;
  executed.plan = executed.whole = snapshot->plan;
  executed.changed_tensors = changed_tensors(*snapshot->plan);
  snapshot->executed = std::make_shared<const PlanEdit>(std::move(executed));
  snapshot->after = demo_checkpoint(true);
  snapshot->target = nullptr;
  if (verified) {
    auto report = std::make_shared<VerifyReport>();
    report->outcome = VerifyReport::Outcome::kProved;
    report->tensors = 1'142;
    report->kept = 1'510'000'000;
    snapshot->verified = report;
  }
  return snapshot;
}

std::shared_ptr<Snapshot> healthy() {
  auto checkpoint = demo_checkpoint(true);
  auto snapshot = with_report(checkpoint, {});
  snapshot->tensor = checkpoint->find("model.layers.3.moe.experts.down_proj.weight");
  snapshot->chunk = checkpoint->chunks(*snapshot->tensor)[5];
  return snapshot;
}

std::shared_ptr<Snapshot> damaged() {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("damaged", {{"__0_0.distcp", Bytes(4'000'000)},
                                                     {"__1_0.distcp", Bytes(4'000'000)},
                                                     {"__2_0.distcp", Bytes(4'000'000)}}));
  builder.add_tensor("blocks.0.attention.wq", Dtype::kFloat32, Extents{1024, 768});
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    if (rank == 5) continue;
    std::int64_t rows = rank == 1 ? 160 : 128;
    builder.add_chunk(Extents{rank * 128, 0}, Extents{rows, 768},
                      {builder.file(file_of(rank % 4)), rank * 400'000, 393'216});
  }
  builder.add_tensor("blocks.0.attention.wk", Dtype::kFloat32, Extents{1024, 768});
  builder.add_chunk(Extents{0, 0}, Extents{1024, 768}, {builder.file(file_of(0)), 0, 3'145'728});
  auto checkpoint = builder.finish();
  Finding missing;
  missing.rule = "missing-file";
  missing.subjects = {"__3_0.distcp"};
  missing.cause = "The metadata points to 2 tiles in __3_0.distcp, and there is no such file.";
  missing.evidence = {{"file", std::string("__3_0.distcp")}, {"tiles", std::int64_t{2}}};
  Finding gap;
  gap.rule = "coverage-gap";
  gap.subjects = {"blocks.0.attention.wq"};
  gap.cause = "128 rows belong to no tile: the rank that wrote them is not in the metadata.";
  gap.evidence = {{"shape", Extents{1024, 768}},
                  {"covered", std::int64_t{688'128}},
                  {"missing", std::vector<Box>{{{640, 0}, {128, 768}}}}};
  Finding overlap;
  overlap.rule = "chunk-overlap";
  overlap.severity = Severity::kWarning;
  overlap.subjects = {"blocks.0.attention.wq"};
  overlap.cause = "Two tiles claim the same 32 rows.";
  overlap.evidence = {{"overlap", std::vector<Box>{{{256, 0}, {32, 768}}}}};
  auto snapshot = with_report(checkpoint, {missing, gap, overlap});
  snapshot->finding = 1;
  snapshot->tensor = TensorId{0};
  snapshot->chunk = ChunkId{2};
  return snapshot;
}

std::shared_ptr<Snapshot> lossy() {
  auto snapshot = damaged();
  auto report = std::make_shared<CheckReport>(*snapshot->report);
  report->findings.erase(report->findings.begin());
  report->findings[0].remedy = Remedy{
      "mask", false, "Keep the 7 tiles that are there and mask the 98,304 elements that are gone."};
  auto plan = std::make_shared<Plan>();
  Operation operation;
  operation.kind = OperationKind::kMask;
  operation.rule = "coverage-gap";
  operation.subjects = {"blocks.0.attention.wq"};
  operation.text = "mask 98,304 elements of [1024, 768]: rows 640 to 768";
  operation.tiles = 1;
  operation.bytes_moved = 393'216;
  operation.elements_lost = 98'304;
  operation.lossless = false;
  plan->operations = {operation};
  plan->lossless = false;
  plan->undecided = {report->findings[1]};
  PlannedTensor tensor;
  tensor.shape = {1024, 768};
  for (ChunkId chunk : snapshot->checkpoint->chunks(TensorId{0}))
    tensor.chunks.push_back({{copy_of(snapshot->checkpoint->offsets(chunk)),
                              copy_of(snapshot->checkpoint->sizes(chunk))},
                             chunk,
                             {},
                             {},
                             0});
  tensor.lost = {{{640, 0}, {128, 768}}};
  tensor.lost_elements = 98'304;
  plan->tensors = {tensor};
  snapshot->report = report;
  snapshot->plan = plan;
  note_in_place(snapshot);
  snapshot->finding = 0;
  return with_target(snapshot);
}

std::shared_ptr<Snapshot> many_tensors(std::uint32_t count, std::uint32_t tiles_each) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  Writer writer{builder};
  constexpr const char* kStates[] = {"exp_avg", "exp_avg_sq", "master_param", "step"};
  for (std::uint32_t t = 0; t < count; ++t) {
    std::string fqn = "optimizer.state.model.layers." + std::to_string(t / 32) + ".mlp.experts." +
                      std::to_string(t / 4 % 8) + ".w1." + kStates[t % 4];
    builder.add_tensor(fqn, Dtype::kFloat32, Extents{2048, 512});
    std::int64_t rows = 2048 / tiles_each;
    for (std::uint32_t i = 0; i < tiles_each; ++i)
      writer.chunk(Extents{i * rows, 0}, Extents{rows, 512}, (t + i) % kRanks, 4);
  }
  auto snapshot = with_report(builder.finish(), {});
  snapshot->tensor = TensorId{count / 2};
  return snapshot;
}

std::shared_ptr<Snapshot> many_tiles(std::int64_t side) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.add_tensor("model.giant.weight", Dtype::kBfloat16, Extents{side * 16, side * 16});
  std::vector<FileId> files;
  for (std::int64_t rank = 0; rank < 1'024; ++rank) files.push_back(builder.file(file_of(rank)));
  for (std::int64_t i = 0; i < side * side; ++i) {
    std::int64_t row = i / side, column = i % side;
    bool lost = row == side / 2 && column == side / 2;
    auto rank = static_cast<std::size_t>(row * 32 / side * 32 + column * 32 / side);
    builder.add_chunk(Extents{row * 16, column * 16}, Extents{16, 16},
                      lost ? ItemPlace{} : ItemPlace{files[rank], i * 512, 512});
  }
  Finding dangling;
  dangling.rule = "storage-dangling";
  dangling.subjects = {"model.giant.weight"};
  dangling.cause = "One tile has no storage record: nothing says where its bytes are.";
  auto snapshot = with_report(builder.finish(), {dangling});
  snapshot->tensor = TensorId{0};
  snapshot->finding = 0;
  return snapshot;
}

std::shared_ptr<Snapshot> cannot_open() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->options.checkpoint = "/runs/7/step_9000";
  snapshot->error = Error{ErrorKind::kDamaged,
                          "cut off: a string of 4,096 bytes was announced, 310 are left",
                          {".metadata", 48'213, ""},
                          "The save was probably interrupted. The data files may be complete: the "
                          "metadata of an earlier step of the same run describes the same layout."};
  return snapshot;
}

std::shared_ptr<Snapshot> opening() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->options.checkpoint = "/runs/7/step_9000";
  return snapshot;
}

std::shared_ptr<Snapshot> odd_shapes() {
  CheckpointBuilder builder;
  builder.set_format(kSafetensorsFormat);
  FileId file = builder.file("model.safetensors");
  for (const Extents& shape : std::vector<Extents>{{},
                                                   {1},
                                                   {0},
                                                   {1'000'000},
                                                   {3, 0, 5},
                                                   {7, 1},
                                                   {1, 7},
                                                   {2, 3, 4, 5, 6},
                                                   {1'000'000'000, 2}}) {
    std::string fqn = "odd." + std::to_string(shape.size());
    for (std::int64_t extent : shape) fqn += "_" + std::to_string(extent);
    builder.add_tensor(fqn, Dtype::kFloat32, shape);
    builder.add_chunk(Extents(shape.size(), 0), shape, {file, 0, 4});
  }
  builder.add_tensor("odd.nothing", Dtype::kInt64, Extents{4, 4});
  builder.add_tensor("odd.far", Dtype::kInt64, Extents{4, 4});
  builder.add_chunk(Extents{std::int64_t{1} << 62, -3}, Extents{std::int64_t{1} << 62, 9},
                    {file, -1, -1});
  builder.add_chunk(Extents{1}, Extents{1}, {file, 1, 1});
  builder.add_tensor(std::string(600, 'x') + ".ünïcode…" + std::string(90, 'y'), Dtype::kBool,
                     Extents{9, 9});
  builder.add_chunk(Extents{0, 0}, Extents{9, 9}, {file, 0, 81});
  auto snapshot = with_report(builder.finish(), {});
  snapshot->tensor = TensorId{0};
  return snapshot;
}

std::vector<State> all_states() {
  JobState none;
  JobState verifying{
      true, "Verifying bytes", Phase::kReadingBytes, 1'900'000'000, 3'020'000'000, true, 1.7};
  JobState open{true, "Opening", Phase::kOpening, 0, 0, false, 0.2};
  auto undecided = healthy();
  auto report = std::make_shared<CheckReport>(*undecided->report);
  report->verdict = Verdict::kUndecided;
  report->deeper = "the headers of 192 items could not be read";
  undecided->report = report;
  auto one_dim = healthy();
  one_dim->tensor = one_dim->checkpoint->find("model.norm.weight");
  one_dim->chunk.reset();
  auto two_dims = healthy();
  two_dims->tensor = two_dims->checkpoint->find("model.embed_tokens.weight");
  two_dims->chunk.reset();
  return {{"welcome", std::make_shared<Snapshot>(), none},
          {"opening", opening(), open},
          {"cannot-open", cannot_open(), none},
          {"demo", demo_planned(), verifying},
          {"demo-unplanned", demo(), none},
          {"repaired", demo_repaired(true), none},
          {"repaired-unproved", demo_repaired(false), none},
          {"healthy", healthy(), none},
          {"undecided", undecided, none},
          {"one-dim", one_dim, none},
          {"two-dims", two_dims, none},
          {"damaged", damaged(), none},
          {"lossy", lossy(), none},
          {"odd-shapes", odd_shapes(), none},
          {"many-tensors", many_tensors(20'000), none},
          {"many-tiles", many_tiles(120), none},
          {"names", with_names(healthy()), none},
          {"run", run_of_steps(6, 12, false), none},
          {"run-numbers", run_of_steps(6, 12, true), none}};
}

}  // namespace shw::make
