// A checkpoint is written in another form from a session.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "core/model/evidence.h"
#include "core/repair/plan/plan.h"
#include "core/session/session.h"
#include "core/temporary_folder.h"
#include "core/verbs/computed_path.h"
#include "core/verbs/verbs.h"
#include "core/verbs/written_as.h"

using namespace shw;

namespace {

// A safetensors file with one tensor of two float32 numbers.
void put_model(const std::string& folder, float first, float second) {
  std::filesystem::create_directories(folder);
  std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size());
  text += header;
  for (float value : {first, second})
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  put(folder + "/model.safetensors", text);
}

struct WriteSession {
  TemporaryFolder folder;
  Session session;

  std::shared_ptr<const Snapshot> now() const { return session.snapshot(); }
  void apply(std::vector<Command> commands) {
    session.apply(std::move(commands));
    session.wait();
  }
  // A copy of a healthy DCP checkpoint of torch.
  std::string dcp() const {
    const std::string path = folder / "step";
    std::filesystem::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt", path,
                          std::filesystem::copy_options::recursive);
    return path;
  }
};

}  // namespace

TEST_CASE("write-as: another format is planned, shown, written next to it and proved") {
  WriteSession s;
  const std::string path = s.dcp();
  s.apply({OpenCommand{path}, CheckCommand{},
           WriteAsCommand{{.to = "safetensors", .weights_only = true}}});
  REQUIRE_FALSE(s.now()->error.has_value());
  REQUIRE(s.now()->edits != nullptr);
  CHECK_FALSE(s.now()->edits->edit().notes.empty());  // what is left out
  CHECK(is_rewrite_only_plan(*s.now()));
  const PlanEdit& edit = s.now()->edits->edit();
  REQUIRE(edit.written != nullptr);
  CHECK(edit.written->format == "safetensors");
  CHECK(edit.written->tensors > 0);
  CHECK(s.now()->not_in_place.has_value());
  s.apply({TargetCommand{}});
  REQUIRE(s.now()->target != nullptr);
  CHECK(s.now()->target->path == path + "-safetensors");
  CHECK_FALSE(std::filesystem::exists(path + "-safetensors"));  // nothing is written by planning

  s.apply({DryRunCommand{}, RepairCommand{}, VerifyCommand{}});
  REQUIRE_FALSE(s.now()->error.has_value());
  REQUIRE(s.now()->repaired != nullptr);
  CHECK(s.now()->repaired->output == path + "-safetensors");
  CHECK(s.now()->verified->outcome == VerifyReport::Outcome::kProved);
  CHECK(s.now()->after->format().name == "safetensors");
  CHECK(s.now()->result_findings->empty());

  s.apply({CheckCommand{}});
  CHECK(s.now()->plan == nullptr);
  CHECK(is_rewrite_only_result(*s.now()));

  // After that another form can be planned, and nothing of the first is reported of it.
  s.apply({WriteAsCommand{{.to = "dcp", .mesh = "dp=4"}}});
  CHECK(s.now()->repaired == nullptr);
  CHECK(s.now()->verified == nullptr);
  CHECK(s.now()->edits->edit().suffix == "-dcp");
  s.apply({RepairCommand{}, VerifyCommand{}});
  REQUIRE_FALSE(s.now()->error.has_value());
  CHECK(s.now()->verified->outcome == VerifyReport::Outcome::kProved);
  CHECK(s.now()->after->rank_count() == 4);
}

TEST_CASE("write-as: a computed checkpoint gets the name of what it is") {
  WriteSession s;
  put_model(s.folder / "a", 1, 2);
  put_model(s.folder / "b", 3, 4);
  s.apply({OpenCommand{verbs::average_path(s.folder / "a", {s.folder / "b"}, {}, false)},
           CheckCommand{}, WriteAsCommand{}});
  REQUIRE_FALSE(s.now()->error.has_value());
  s.apply({RepairCommand{}, VerifyCommand{}});
  REQUIRE(s.now()->repaired != nullptr);
  CHECK(s.now()->repaired->output == s.folder / "a-averaged");
  CHECK(s.now()->verified->outcome == VerifyReport::Outcome::kProved);
  const std::string file = contents(s.folder / "a-averaged/model.safetensors");
  float last = 0;
  std::memcpy(&last, file.data() + file.size() - sizeof last, sizeof last);
  CHECK(last == 3);
}

TEST_CASE("write-as: the result of a computation is named after it, others after their format") {
  const std::string quantised = verbs::quantised_path("/runs/a", "fp8-block");
  CHECK(verbs::suffix_of_result(quantised, "safetensors") == "-fp8-block");
  const std::string merged = verbs::merged_path("/runs/a", "/runs/b");
  CHECK(verbs::suffix_of_result(merged, "safetensors") == "-merged");
  CHECK(verbs::suffix_of_result(verbs::quantised_path(merged, "mxfp4"), "safetensors") == "-mxfp4");
  const std::string numbers = "/runs/a" + std::string(verbs::kDequantisedPath);
  CHECK(verbs::suffix_of_result(numbers, "safetensors") == "-dequantised");
  CHECK(verbs::suffix_of_result("/runs/a", "dcp") == "-dcp");
}

TEST_CASE("write-as: a broken checkpoint, a broken input and an unknown form are refused") {
  WriteSession s;
  const std::string path = s.dcp();
  s.apply({OpenCommand{path}, CheckCommand{}, WriteAsCommand{{.to = "sqlite"}}});
  REQUIRE(s.now()->error.has_value());
  CHECK(s.now()->error->message.find("sqlite") != std::string::npos);
  CHECK(s.now()->plan == nullptr);
  put_model(s.folder / "a", 1, 2);
  put_model(s.folder / "b", 3, 4);
  std::filesystem::resize_file(s.folder / "b/model.safetensors", 66);
  s.apply({OpenCommand{s.folder / "a/@average=" + (s.folder / "b")}});
  const bool is_refused_at_once = s.now()->error.has_value();
  s.apply({CheckCommand{}, WriteAsCommand{}});
  CHECK((is_refused_at_once || s.now()->error.has_value()));
  CHECK(s.now()->plan == nullptr);

  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".distcp") {
      std::filesystem::remove(entry.path());
      break;
    }
  }
  s.apply({OpenCommand{path}, CheckCommand{}, WriteAsCommand{{.to = "safetensors"}}});
  REQUIRE(s.now()->error.has_value());
  CHECK(s.now()->error->message.find("broken") != std::string::npos);
  CHECK(s.now()->repaired == nullptr);
}

TEST_CASE("write-as: a plan of a sound checkpoint is not carried out once a file is lost") {
  WriteSession s;
  const std::string path = s.dcp();
  s.apply({OpenCommand{path}, CheckCommand{}, WriteAsCommand{{.to = "dcp"}}});
  REQUIRE(s.now()->edits != nullptr);
  const std::string plan = plan_to_json(*s.now()->checkpoint, *s.now()->plan);
  std::filesystem::remove(path + "/__0_0.distcp");
  s.apply({OpenCommand{path}, CheckCommand{}, PlanCommand{}, EditPlanCommand{plan}});
  CHECK(s.now()->error.has_value());
  s.apply({RepairCommand{}});
  CHECK(s.now()->repaired == nullptr);
  CHECK_FALSE(std::filesystem::exists(path + "-dcp"));
}

TEST_CASE("write-as: an edit goes back to the repair, and the repair is not planned over it") {
  WriteSession s;
  s.apply({OpenCommand{s.dcp()}, CheckCommand{}, PlanCommand{}});
  REQUIRE(s.now()->plan != nullptr);
  s.apply({WriteAsCommand{{.to = "dcp", .dtype = "bfloat16", .weights_only = true}}});
  REQUIRE_FALSE(s.now()->error.has_value());
  CHECK(is_rewrite_only_plan(*s.now()));
  CHECK_FALSE(s.now()->edits->edit().notes.empty());
  s.apply({PlanCommand{{}, true}});  // as after a check
  CHECK(is_rewrite_only_plan(*s.now()));
  s.apply({PlanUndoCommand{}});
  CHECK_FALSE(is_rewrite_only_plan(*s.now()));
}

TEST_CASE("write-as: its text form is read back") {
  for (const char* line : {"write-as safetensors", "write-as keep mesh dp=2,tp=2",
                           "write-as dcp mesh dp=2 dtype bfloat16 weights-only"}) {
    CAPTURE(line);
    auto command = parse_command(line);
    REQUIRE(command.has_value());
    CHECK(to_text(*command) == line);
  }
  for (const char* line : {"write-as", "write-as dcp in", "write-as dcp weights-only mesh"})
    CHECK_FALSE(parse_command(line).has_value());
}

TEST_CASE("plan: the step that a finding suggests is planned, and applied into a new folder") {
  WriteSession s;
  std::string header, data(6 * 5 * sizeof(float), '\0');
  for (int layer = 0; layer < 5; ++layer) {
    header += std::string(layer == 0 ? "" : ",") + "\"layers." + std::to_string(layer) +
              ".up.weight\":{\"dtype\":\"F32\",\"shape\":" + (layer == 3 ? "[3,2]" : "[2,3]") +
              ",\"data_offsets\":[" + std::to_string(layer * 24) + "," +
              std::to_string(layer * 24 + 24) + "]}";
  }
  header = "{" + header + "}";
  std::string text(8, '\0');
  text[0] = static_cast<char>(header.size() & 0xff);
  text[1] = static_cast<char>(header.size() >> 8);
  std::filesystem::create_directories(s.folder / "model");
  put(s.folder / "model/model.safetensors", text + header + data);

  s.apply({OpenCommand{s.folder / "model"}, CheckCommand{}, PlanCommand{}});
  REQUIRE_FALSE(s.now()->report->findings.empty());
  const Finding& finding = s.now()->report->findings.front();
  REQUIRE(finding.rule == "sibling-axes");
  CHECK(s.now()->plan->empty());  // nothing here proves the step
  const auto* step = find_evidence<std::string>(finding, "suggested_step");
  REQUIRE(step != nullptr);

  s.apply({PlanCommand{{}, false, *step}});
  REQUIRE_FALSE(s.now()->error.has_value());
  CHECK(s.now()->plan->steps.size() == 1);
  CHECK(s.now()->plan->undecided.empty());
  CHECK(s.now()->edits->edit().notes.size() == 1);  // nothing proves it
  s.apply({RepairCommand{}, VerifyCommand{}});
  REQUIRE_FALSE(s.now()->error.has_value());
  const Checkpoint& after = *s.now()->after;
  CHECK(to_text(after.shape(*after.find("layers.3.up.weight"))) == "[2, 3]");
  CHECK(to_text(s.now()->checkpoint->shape(*s.now()->checkpoint->find("layers.3.up.weight"))) ==
        "[3, 2]");
}
