// Source files that another program changes while they are read.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/faulty_store.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/proof/verify.h"
#include "core/repair/row_plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"
#include "core/transform/drawn_plan.h"

using namespace shw;

namespace {

// "w" of [6, 4] in two files.
void write_source(const std::string& path) {
  MadeTensor w{"w", {6, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i) {
    Values values;
    for (std::int64_t k = 0; k < 12; ++k) values.push_back(100 * i + k + 1);
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
  }
  write_checkpoint(path, {w});
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Overwrites bytes of the file and keeps its modification time.
void write_behind(const std::string& path, const std::string& bytes) {
  const auto time = std::filesystem::last_write_time(path);
  auto folder = open_directory(std::filesystem::path(path).parent_path().string());
  REQUIRE(folder.has_value());
  const std::string name = std::filesystem::path(path).filename().string();
  const Entry before = (*folder)->stat(name);
  // The file system's clock may be still for some milliseconds.
  for (Entry now = before; now.changed_ns == before.changed_ns; now = (*folder)->stat(name)) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    std::filesystem::last_write_time(path, time);
  }
  CHECK((*folder)->stat(name).modified_ns == before.modified_ns);
}

using Make =
    std::function<Result<RepairResult>(Store&, const std::string& source, const std::string& out)>;

// Result of a run during which `touch` happens once all tiles are written.
Result<RepairResult> made_meanwhile(const Make& make, const TemporaryFolder& folder,
                                    const std::function<void(const std::string&)>& touch) {
  write_source(folder / "ckpt");
  bool done = false;
  FaultyStore store(posix_store(), [&](const std::string& step, const std::string& path) {
    if (!done && step == "create" && path == ".metadata") {
      done = true;
      touch(folder / "ckpt/__1_0.distcp");
    }
    return std::nullopt;
  });
  auto made = make(store, folder / "ckpt", folder / "out");
  CHECK(done);
  return made;
}

// Changes an element of w.
void change_element(const std::string& path) {
  std::string bytes = bytes_of_file(path);
  const float value = 105;
  const std::string before(reinterpret_cast<const char*>(&value), sizeof value);
  const std::size_t at = bytes.find(before);
  REQUIRE(at != std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_behind(path, bytes);
}

const Make kMakes[] = {
    [](Store& store, const std::string& source, const std::string& out) {
      auto checkpoint = open_checkpoint(source);
      REQUIRE(checkpoint.has_value());
      return apply_plan(store, **checkpoint, plan_of_rows(**checkpoint, true), {out});
    },
    [](Store& store, const std::string& source, const std::string& out) {
      auto checkpoint = open_checkpoint(source);
      REQUIRE(checkpoint.has_value());
      test::DrawnPlan plan;
      plan.steps = {ReshardStep{{"w"}, {{{"dp", 3}}}, {{Placement::Kind::kShard, 0, 1}}}};
      const TargetState all = test::taken(*checkpoint, plan.steps);
      return make_target(store, all, test::run_into(plan, all, out), nullptr);
    }};

}  // namespace

TEST_CASE("a source that is changed behind its size and time while it is read is never proved") {
  for (const Make& make : kMakes) {
    TemporaryFolder folder;
    auto made = made_meanwhile(make, folder, change_element);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().message.find("changed while it was being read") == 0);
    CHECK(made.error().place.file == "__1_0.distcp");
    CHECK_FALSE(posix_store().exists(folder / "out"));
    // The change is also detected by a later run.
    auto again = make(posix_store(), folder / "ckpt", folder / "out");
    REQUIRE_FALSE(again.has_value());
    CHECK(again.error().message.find("does not match its checksum") != std::string::npos);
    CHECK_FALSE(posix_store().exists(folder / "out"));
  }
}

TEST_CASE("a source that is touched and not changed is compared with the result and proved") {
  for (const Make& make : kMakes) {
    TemporaryFolder folder;
    auto made = made_meanwhile(
        make, folder, [](const std::string& path) { write_behind(path, bytes_of_file(path)); });
    if (!made) FAIL(made.error().message << " " << made.error().place.tensor);
    CHECK(posix_store().exists(folder / "out"));
  }
}
