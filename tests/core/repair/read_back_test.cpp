// What happens when the result of a repair cannot be read back, or a crash takes what was never
// made durable.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "core/repair/apply.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan.h"
#include "core/repair/steps.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

// [6, 4] in two row tiles, which belong side by side along the columns: bytes move.
void write_row_tiles(const std::string& path) {
  MadeTensor w{"w", {6, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i) {
    Values values;
    for (std::int64_t k = 0; k < 12; ++k) values.push_back(100 * i + k);
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
  }
  write_checkpoint(path, {w});
}

// The rows in another order: bytes move. Or only labels do, so that it can be done in place.
Plan plan_to_move(const Checkpoint& checkpoint, bool moves) {
  CheckReport report;
  Finding finding;
  finding.rule = "planted";
  finding.subjects = {"w"};
  if (moves) {
    finding.diagnoses = {BlocksPermuted{TensorId{0}, 0, 1, {5, 4, 3, 2, 1, 0}}};
  } else {
    finding.diagnoses = {Relabelled{TensorId{0}, {6, 4}, {{{3, 0}, {3, 4}}, {{0, 0}, {3, 4}}}}};
  }
  report.findings = {finding};
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->tensors.size() == 1);
  return *plan;
}

std::map<std::string, std::string> files_under(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files[entry.path().string()] = contents(entry.path().string());
  }
  return files;
}

// A directory that remembers what is durable: forget() puts back what a crash would leave.
class Forgetting {
 public:
  using State = std::map<std::string, std::string>;  // durable names with durable contents

  // What lies there at the beginning is durable.
  explicit Forgetting(std::string path) : path_(std::move(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.is_regular_file()) finished(entry.path().filename().string());
    }
    sync();
  }
  void finished(const std::string& file) { contents_[file] = contents(path_ + "/" + file); }
  void renamed(const std::string& from, const std::string& to) { contents_[to] = contents_[from]; }
  void sync() {
    durable_.clear();
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::string name = entry.path().filename().string();
      if (!entry.is_regular_file()) continue;
      // A file that was never made durable itself is there, and empty.
      durable_[name] = contents_.contains(name) ? contents(entry.path().string()) : std::string();
    }
  }
  void forget() {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.is_regular_file()) std::filesystem::remove(entry.path());
    }
    for (const auto& [name, text] : durable_) put(path_ + "/" + name, text);
  }

 private:
  std::string path_;
  State durable_, contents_;
};

class ForgettingSink final : public ByteSink {
 public:
  ForgettingSink(std::unique_ptr<ByteSink> inner, std::string name, Forgetting& memory)
      : inner_(std::move(inner)), name_(std::move(name)), memory_(memory) {}
  Status write(std::span<const std::byte> bytes) override { return inner_->write(bytes); }
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return inner_->write_at(offset, bytes);
  }
  Status skip(std::uint64_t length) override { return inner_->skip(length); }
  std::uint64_t position() const override { return inner_->position(); }
  Status finish() override {
    SHW_CHECK(inner_->finish());
    memory_.finished(name_);
    return {};
  }

 private:
  std::unique_ptr<ByteSink> inner_;
  std::string name_;
  Forgetting& memory_;
};

class ForgettingDirectory final : public WritableDirectory {
 public:
  ForgettingDirectory(std::unique_ptr<WritableDirectory> inner, Forgetting& memory)
      : inner_(std::move(inner)), memory_(memory) {}
  const std::string& path() const override { return inner_->path(); }
  Result<std::unique_ptr<ByteSink>> create(const std::string& relative) override {
    SHW_TRY(auto sink, inner_->create(relative));
    return std::make_unique<ForgettingSink>(std::move(sink), relative, memory_);
  }
  Status copy_in(const std::string& source, const std::string& relative,
                 Progress* progress) override {
    SHW_CHECK(inner_->copy_in(source, relative, progress));
    memory_.finished(relative);  // durable when it returns
    return {};
  }
  Status rename(const std::string& from, const std::string& to) override {
    SHW_CHECK(inner_->rename(from, to));
    memory_.renamed(from, to);
    return {};
  }
  Status remove(const std::string& relative) override { return inner_->remove(relative); }
  Status sync() override {
    SHW_CHECK(inner_->sync());
    memory_.sync();
    return {};
  }

 private:
  std::unique_ptr<WritableDirectory> inner_;
  Forgetting& memory_;
};

}  // namespace

TEST_CASE("a repair whose result cannot be read back at any byte leaves nothing behind") {
  TemporaryFolder folder;
  write_row_tiles(folder / "ckpt");
  auto before = files_under(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_to_move(*checkpoint, true);
  bool finished = false;
  int read = 0;
  for (; !finished && read < 500; ++read) {
    CAPTURE(read);
    int at = 0;
    auto files = faulty_file_system(
        [](const std::string&, const std::string&) { return std::optional<Error>(); },
        [&](const std::string& path, std::uint64_t offset, std::size_t) {
          return at++ == read
                     ? std::optional<Error>(Error{ErrorKind::kIo, "bad block", {path, offset}})
                     : std::nullopt;
        });
    auto result = apply_plan_on(files, *checkpoint, plan, {folder / "out"}, nullptr);
    finished = result.has_value();
    CHECK(std::filesystem::exists(folder / "out") == finished);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()),
                        std::filesystem::directory_iterator()) == (finished ? 2 : 1));
    CHECK(files_under(folder / "ckpt") == before);
  }
  CHECK(finished);
  CHECK(read > 5);
}

TEST_CASE("a crash that takes what was not made durable leaves the old or the new state in place") {
  Values old_values, new_values;
  {
    TemporaryFolder folder;
    write_row_tiles(folder / "ckpt");
    auto checkpoint = opened(folder / "ckpt");
    old_values = values_of(*checkpoint, "w");
    REQUIRE(
        apply_plan(*checkpoint, plan_to_move(*checkpoint, false), {folder / "out"}).has_value());
    new_values = values_of(*opened(folder / "out"), "w");
  }
  CHECK(old_values != new_values);
  bool finished = false;
  int step = 0, new_states = 0;
  for (; !finished && step < 200; ++step) {
    CAPTURE(step);
    TemporaryFolder folder;
    std::string path = folder / "ckpt";
    write_row_tiles(path);
    auto before = files_under(path);
    auto checkpoint = opened(path);
    Plan plan = plan_to_move(*checkpoint, false);
    Forgetting memory(path);
    int at = 0;
    auto decide = [&](const std::string&, const std::string& file) {
      return at++ >= step ? std::optional<Error>(Error{ErrorKind::kIo, "gone", {file}})
                          : std::nullopt;
    };
    RepairFileSystem files = faulty_file_system(decide);
    files.open = [&](const std::string& where) -> RepairFileSystem::Opened {
      SHW_TRY(auto real, open_writable_directory(where));
      return faulty_writable(std::make_unique<ForgettingDirectory>(std::move(real), memory),
                             decide);
    };
    ApplyOptions options;
    options.in_place = true;
    finished = apply_plan_on(files, *checkpoint, plan, options, nullptr).has_value();
    memory.forget();
    Values now = values_of(*opened(path), "w");
    CHECK((now == old_values || now == new_values));
    if (finished) CHECK(now == new_values);
    new_states += now == new_values;
    Status undone = undo_repair(path);
    if (!undone) CHECK(undone.error().kind == ErrorKind::kUsage);
    CHECK(values_of(*opened(path), "w") == old_values);
    CHECK(files_under(path) == before);
  }
  CHECK(finished);
  CHECK(new_states > 0);
}
