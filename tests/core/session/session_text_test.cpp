#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/model/builder.h"
#include "core/session/session.h"
#include "core/unnamed_format.h"
#include "core/verbs/names/filter.h"
#include "core/verbs/names/sort.h"

using namespace shw;

namespace {

RepairCommand on_device(const char* device, const char* out) {
  RepairCommand repair;
  repair.options.out = out;
  REQUIRE(parse_device(device, repair.options.device));
  return repair;
}

}  // namespace

TEST_CASE("every command reads back from its own text") {
  const Command commands[] = {OpenCommand{"a dir/step 9", "spec.json"},
                              OpenCommand{"x"},
                              OpenCommand{"x", "", "other one", "dp=4,tp=2"},
                              CheckCommand{},
                              PlanCommand{"", false, R"({"step":"drop","tensors":["a b"]})"},
                              MeshCommand{"dp=4,tp=2"},
                              MeshCommand{},
                              PlanCommand{},
                              PlanCommand{"from:/runs/7/step 8"},
                              PlanCommand{"", false, "", true},
                              PlanCommand{"zero", false, "", true},
                              RepairCommand{},
                              RepairCommand{{"out dir", false}},
                              RepairCommand{{"", true}},
                              RepairCommand{{"out dir", false}, "0123abcd"},
                              RepairCommand{{"", true}, "0123abcd"},
                              RepairCommand{{}, "0123abcd"},
                              VerifyCommand{},
                              UndoCommand{},
                              CancelCommand{},
                              SelectTensorCommand{"model.layers.3.weight"},
                              SelectChunkCommand{ChunkId{7}},
                              SelectChunkCommand{},
                              SelectFindingCommand{2},
                              FilterCommand{"finding:* down_proj"},
                              FilterCommand{},
                              SortCommand{SortKey::kBytes, true},
                              StepCommand{2, true},
                              StepCommand{0, false},
                              PlanUndoCommand{},
                              PlanRedoCommand{},
                              EditPlanCommand{"{\"plan\":\n 1}"},
                              SavePlanCommand{"~/my plan.json"},
                              LoadPlanCommand{"/runs/7/plan.json"},
                              DryRunCommand{},
                              TargetCommand{"../out dir"},
                              TargetCommand{},
                              ResumeCommand{"/runs/7/out dir"},
                              RollBackCommand{"/runs/7/out"},
                              CommitCommand{},
                              CompareCommand{"/runs/8/step 9"},
                              CompareCommand{"x", true},
                              LearnCommand{"/runs/8/step 9"},
                              DifferenceCommand{12},
                              ExplainErrorCommand{"two\nlines"},
                              ReportCommand{},
                              ReportCommand{"/runs/7/my pages"},
                              DemoCommand{"/tmp/a demo"},
                              BytesCommand{BytesCommand::Go::kAt, "__0_0.distcp", 4096},
                              ValuesCommand{},
                              ValuesCommand{false, {}, verbs::SearchedValue::kNan},
                              ValuesCommand{false, {}, verbs::SearchedValue::kDifference},
                              BrowseCommand{"~/my runs/"},
                              GoCommand{-1},
                              TileValuesCommand{},
                              PauseCommand{},
                              PauseCommand{"check"},
                              ContinueCommand{},
                              ContinueCommand{"check"},
                              CancelCommand{"compare"},
                              RunCommand{},
                              RunCommand{"/runs/a run"},
                              DiskCommand{},
                              SaveValuesCommand{verbs::ValuesFile::kCsv, "/tmp/w.csv"},
                              SaveViewCommand{},
                              RunNumbersCommand{},
                              TensorNumbersCommand{},
                              HashCommand{},
                              HashCommand{"/tmp/a hash.txt"},
                              PlaceCommand{verbs::NewFile::kNpy, "/tmp/a file.npy"},
                              PlaceCommand{verbs::NewFile::kSvg},
                              PinCommand{"looks odd"},
                              PinCommand{},
                              UnpinCommand{3},
                              WriteAsCommand{},
                              WriteAsCommand{{"dcp", "dp=2,tp=2", "bfloat16", true}},
                              SaveViewCommand{"/tmp/a view"},
                              SortCommand{SortKey::kShape},
                              on_device("cpu", ""),
                              on_device("cuda:1", "/runs/7/device cpu"),
                              SortCommand{SortKey::kDtype, true}};
  std::set<std::size_t> written;
  for (const Command& command : commands) {
    written.insert(command.index());
    std::string text = to_text(command);
    auto parsed = parse_command(text);
    REQUIRE_MESSAGE(parsed.has_value(), text);
    CHECK(parsed->index() == command.index());
    CHECK(to_text(*parsed) == text);
  }
  for (std::size_t row = 0; row < command_table().size(); ++row)
    CHECK_MESSAGE(written.contains(row), std::string(command_table()[row].verb));
}

TEST_CASE("a line that is not a command says what was expected") {
  for (const char* line :
       {"", "opne x", "open", "check deep", "tile x", "sort size", "repair into x", "plan now",
        "plan-step 0 on", "plan-step 1", "plan-save"}) {
    auto parsed = parse_command(line);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().kind == ErrorKind::kUsage);
    CHECK(parsed.error().message.find("expected") != std::string::npos);
  }
}

TEST_CASE("every row of the table of commands is at its alternative") {
  for (const CommandRow& row : command_table()) {
    std::string verb(row.verb);
    CHECK_MESSAGE(row.form.starts_with(verb), verb);
    bool is_own = verb == "cancel" || verb == "filter" || verb == "sort" || verb == "go" ||
                  verb == "pause" || verb == "continue";
    CHECK_MESSAGE((row.run == nullptr) == is_own, verb);
    CHECK_MESSAGE((row.lane == Lane::kNow) == row.title.empty(), verb);
  }
  for (const char* line :
       {"open x",      "check",           "mesh a=2",   "plan",      "repair",       "verify",
        "undo",        "cancel",          "select a.b", "tile 1",    "finding 0",    "filter x",
        "sort name",   "plan-step 1 off", "plan-undo",  "plan-redo", "plan-edit {}", "plan-save a",
        "plan-load a", "dry-run",         "target a",   "pause",     "continue"}) {
    auto command = parse_command(line);
    REQUIRE_MESSAGE(command.has_value(), line);
    CHECK(to_text(*command) == line);
    CHECK(std::string_view(line).starts_with(row_of(*command).verb));
  }
}

TEST_CASE("a checkpoint that is opened again keeps what the person said next to it") {
  Snapshot snapshot;
  snapshot.options.checkpoint = "a";
  snapshot.options.spec = "s.json";
  snapshot.options.against = "ref";
  snapshot.options.mesh = "dp=2";
  CHECK(to_text(reopen_command(snapshot, "a-repaired")) ==
        "open a-repaired spec s.json against ref mesh dp=2");
  OpenCommand place{"a", "", "", "", "model.down", "[0:4, 2:6] copy 2", "chunk-overlap model.down"};
  auto parsed = parse_command(to_text(Command{place}));
  REQUIRE(parsed.has_value());
  CHECK(std::get<OpenCommand>(*parsed).tile == place.tile);
  CHECK(std::get<OpenCommand>(*parsed).finding == place.finding);
  CHECK(std::get<OpenCommand>(*parsed).tensor == place.tensor);
}

namespace {

std::shared_ptr<const Checkpoint> small_model() {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  builder.add_tensor("model.Embed.weight", Dtype::kBfloat16, Extents{100, 8});
  builder.add_chunk(Extents{0, 0}, Extents{100, 8}, {builder.file("__0_0.distcp"), 0, 10});
  builder.add_tensor("model.layers.0.down_proj.weight", Dtype::kFloat32, Extents{4, 6, 5});
  builder.add_chunk(Extents{0, 0, 0}, Extents{2, 6, 5}, {builder.file("__1_0.distcp"), 0, 10});
  builder.add_chunk(Extents{2, 0, 0}, Extents{2, 6, 5}, {builder.file("__17_0.distcp"), 0, 10});
  return builder.finish();
}

std::vector<std::uint32_t> passing(const Checkpoint& checkpoint, const CheckReport* report,
                                   std::string_view text) {
  auto found = filter_tensors(checkpoint, report, text, nullptr);
  REQUIRE(found.has_value());
  return *found;
}

}  // namespace

TEST_CASE("the filter line finds words in any case, ranks, shapes, types and findings") {
  auto model = small_model();
  using Rows = std::vector<std::uint32_t>;
  CHECK(passing(*model, nullptr, "") == Rows{0, 1});
  CHECK(passing(*model, nullptr, "embed") == Rows{0});
  CHECK(passing(*model, nullptr, "MODEL down") == Rows{1});
  CHECK(passing(*model, nullptr, "rank:17") == Rows{1});
  CHECK(passing(*model, nullptr, "rank:x").empty());
  CHECK(passing(*model, nullptr, "shape:[4,*,5]") == Rows{1});
  CHECK(passing(*model, nullptr, "shape:[5]").empty());
  CHECK(passing(*model, nullptr, "dtype:int").empty());
  CHECK(passing(*model, nullptr, "dtype:bfloat16") == Rows{0});
  CHECK(passing(*model, nullptr, "ndim:3 layers") == Rows{1});
  CheckReport report;
  report.findings.push_back(
      {"coverage-gap", Severity::kError, {"model.Embed.weight"}, "", {}, {}, {}, ""});
  CHECK(passing(*model, &report, "finding:*") == Rows{0});
  CHECK(passing(*model, &report, "finding:coverage") == Rows{0});
  CHECK(passing(*model, &report, "finding:overlap").empty());
}

TEST_CASE("a filter takes dtypes as people spell them and exactly the dimensions that are named") {
  auto model = small_model();
  using Rows = std::vector<std::uint32_t>;
  for (const char* text : {"dtype:bf16", "dtype:BF16", "dtype:torch.bfloat16"}) {
    CAPTURE(text);
    CHECK(passing(*model, nullptr, text) == Rows{0});
  }
  for (const char* text : {"dtype:fp32", "dtype:float", "dtype:f32", "dtype:float32"}) {
    CAPTURE(text);
    CHECK(passing(*model, nullptr, text) == Rows{1});
  }
  CHECK(passing(*model, nullptr, "shape:[100,*]") == Rows{0});
  CHECK(passing(*model, nullptr, "shape:[4,*]").empty());
  CHECK(passing(*model, nullptr, "shape:4x*x5") == Rows{1});
  CHECK(passing(*model, nullptr, "shape:[4,") == Rows{1});  // while it is typed
}

TEST_CASE("a term that is none is refused with what was meant") {
  auto model = small_model();
  struct Row {
    const char* text;
    const char* advice;
  };
  const Row wrong[] = {{"foo:bar", "The terms are"},
                       {"dytpe:bf16", "did you mean dtype"},
                       {"dtype:bfloat61", "did you mean bfloat16"},
                       {"finding:coverage-gab", "did you mean coverage-gap"},
                       {"finding:nosuch", "explain"},
                       {"rank:x", "rank:3"},
                       {"ndim:-1", "ndim:3"},
                       {"shape:[4,b]", "shape:[288,*,640]"},
                       {"shape:[4,", "shape:[288,*,640]"}};
  for (const Row& row : wrong) {
    CAPTURE(row.text);
    auto refused = check_filter(*model, std::string("embed ") + row.text);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == ErrorKind::kUsage);
    CHECK(refused.error().advice.find(row.advice) != std::string::npos);
  }
  for (const char* text : {"", "embed", "rank:99", "finding:*", "finding:gap", "dtype:fp8",
                           "shape:[4,*]", "ndim:7", "a:"}) {
    CAPTURE(text);
    CHECK(check_filter(*model, text).has_value());
  }
}

TEST_CASE("a filter that is no longer wanted stops") {
  auto model = small_model();
  Progress progress;
  progress.cancel();
  auto stopped = filter_tensors(*model, nullptr, "x", &progress);
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().kind == ErrorKind::kCancelled);
}

TEST_CASE("tensors sort by bytes, tiles and name, both ways") {
  auto model = small_model();
  std::vector<std::uint32_t> order{0, 1};
  sort_tensors(*model, nullptr, SortKey::kBytes, false, order);
  CHECK(order == std::vector<std::uint32_t>{1, 0});
  sort_tensors(*model, nullptr, SortKey::kChunks, true, order);
  CHECK(order == std::vector<std::uint32_t>{1, 0});
  sort_tensors(*model, nullptr, SortKey::kName, false, order);
  CHECK(order == std::vector<std::uint32_t>{0, 1});
}
