// Lost files are filled in a session, places are pinned, and numbers of tensors are read.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "core/session/session.h"
#include "core/temporary_folder.h"
#include "core/verbs/verbs.h"
#include "core/verbs/view_file.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

const std::string kWholeStep = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt";

struct FillSession {
  TemporaryFolder folder;
  Session session;
  std::string whole = folder / "step_1000", damaged = folder / "step_1100";

  FillSession() {
    for (const std::string& path : {whole, damaged})
      fs::copy(kWholeStep, path, fs::copy_options::recursive);
  }
  std::shared_ptr<const Snapshot> now() const { return session.snapshot(); }
  void apply(std::vector<Command> commands) {
    session.apply(std::move(commands));
    session.wait();
  }
};

}  // namespace

TEST_CASE("fill: a file that is missing or cut off is taken from another step, and proved") {
  for (const bool is_cut : {false, true}) {
    CAPTURE(is_cut);
    FillSession s;
    const std::string file = s.damaged + "/__1_0.distcp";
    is_cut ? fs::resize_file(file, fs::file_size(file) / 2) : void(fs::remove(file));
    s.apply({OpenCommand{s.damaged}, CheckCommand{}, PlanCommand{}});
    REQUIRE(s.now()->plan != nullptr);
    CHECK(s.now()->plan->empty());  // nothing is filled that nobody asked for
    s.apply({PlanCommand{"from:" + s.whole}});
    REQUIRE_FALSE(s.now()->error.has_value());
    CHECK(s.now()->options.fill == "from:" + s.whole);
    CHECK(s.now()->plan->transforms());
    CHECK_FALSE(is_rewrite_only_plan(*s.now()));
    s.apply({TargetCommand{}, RepairCommand{}, VerifyCommand{}});
    REQUIRE_FALSE(s.now()->error.has_value());
    REQUIRE(s.now()->repaired != nullptr);
    CHECK(s.now()->repaired->output == s.damaged + "-repaired");
    CHECK(s.now()->verified->outcome == VerifyReport::Outcome::kProved);
    CHECK(s.now()->result_findings->empty());
    // Both steps are copies of one checkpoint; filled elements are never called the tensor's own.
    s.apply({OpenCommand{s.damaged + "-repaired"}, CompareCommand{s.whole, true}});
    REQUIRE(s.now()->compared != nullptr);
    for (const TensorDifference& each : s.now()->compared->difference.tensors) {
      CAPTURE(each.fqn);
      const bool is_filled = each.kind == DifferenceKind::kUndecided;
      CHECK((is_filled || each.kind == DifferenceKind::kRetiled));
    }
  }
}

TEST_CASE("pins: a place is pinned with its note, saved with the view and opened with it") {
  FillSession s;
  s.apply({OpenCommand{s.whole}});
  s.apply({SelectTensorCommand{"model.0.weight"}, PinCommand{"first\nline"}});
  s.apply({PinCommand{"odd"}});
  s.apply({SelectTensorCommand{"model.1.weight"}, PinCommand{}});
  REQUIRE(s.now()->pins != nullptr);
  REQUIRE(s.now()->pins->size() == 2);  // the same place has the later note
  CHECK((*s.now()->pins)[0].tensor == "model.0.weight");
  CHECK((*s.now()->pins)[0].note == "odd");
  s.apply({SaveViewCommand{}});
  REQUIRE(s.now()->saved_view != nullptr);
  const std::string view = s.now()->saved_view->path;
  s.apply({OpenCommand{s.whole}});  // again: they stay
  CHECK(s.now()->pins->size() == 2);
  s.apply({UnpinCommand{0}});
  s.apply({UnpinCommand{7}});
  CHECK(s.now()->pins->size() == 1);
  s.apply({OpenCommand{s.damaged}});
  CHECK(s.now()->pins == nullptr);
  s.apply({OpenCommand{view}});
  REQUIRE(s.now()->pins != nullptr);
  CHECK(s.now()->pins->size() == 2);
  CHECK(s.now()->pins->front().note == "odd");
}

TEST_CASE("pins: a view whose pins are not places is refused") {
  TemporaryFolder folder;
  for (const char* pins : {"1", "[1]", "[{}]", R"([{"tensor": 1}])"}) {
    CAPTURE(pins);
    const std::string path = folder / "a.shardwright";
    put(path, std::string(R"({"schema": "shardwright-view/1", "checkpoint": "c", "pins": )") +
                  pins + "}");
    CHECK_FALSE(verbs::read_view_file(path).has_value());
  }
}

TEST_CASE("tensor numbers: norm, zeros and elements are those of each tensor's statistics") {
  FillSession s;
  s.apply({OpenCommand{s.whole}, TensorNumbersCommand{}});
  REQUIRE(s.now()->numbers != nullptr);
  const Checkpoint& c = *s.now()->checkpoint;
  REQUIRE(s.now()->numbers->tensors.size() == c.tensor_count());
  CHECK(s.now()->numbers->partly_read_tensors == 0);
  for (TensorId tensor : c.tensors()) {
    const verbs::TensorNumbers& numbers = s.now()->numbers->tensors[index_of(tensor)];
    CHECK(numbers.is_read);
    CHECK(numbers.elements == static_cast<std::uint64_t>(*volume(c.shape(tensor))));
    CHECK(numbers.nan == 0);
    CHECK(numbers.absent == 0);
    CHECK(std::isfinite(numbers.squares));
  }
  fs::remove(s.damaged + "/__1_0.distcp");
  s.apply({OpenCommand{s.damaged}});
  CHECK(s.now()->numbers == nullptr);
  s.apply({TensorNumbersCommand{}});
  REQUIRE(s.now()->numbers != nullptr);
  std::size_t partly_read_tensors = 0;
  for (const verbs::TensorNumbers& numbers : s.now()->numbers->tensors)
    partly_read_tensors += numbers.absent != 0 ? 1 : 0;
  CHECK(partly_read_tensors > 0);
  CHECK(s.now()->numbers->partly_read_tensors == partly_read_tensors);
}
