// Read errors in files that a repair, or a verdict about one, depends on.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "core/faulty_store.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/row_plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

// [6, 4] in two row tiles that should be column tiles, so bytes move.
void write_row_tiles(const std::string& path) {
  MadeTensor w{"w", {6, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i) {
    Values values;
    for (std::int64_t k = 0; k < 12; ++k) values.push_back(100 * i + k);
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
  }
  write_checkpoint(path, {w});
}

std::map<std::string, std::string> files_under(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files[entry.path().string()] = contents(entry.path().string());
  }
  return files;
}

// Makes the first byte of the n-th read unreadable, now and for later reads.
struct NthRead {
  struct BadByte {
    std::mutex guard;
    std::string path;
    std::uint64_t at = 0;
  };
  int wanted = 0;
  std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<BadByte> bad = std::make_shared<BadByte>();
  std::optional<Error> operator()(const std::string& path, std::uint64_t offset,
                                  std::size_t length) const {
    std::lock_guard lock(bad->guard);
    if ((*asked)++ == wanted) {
      bad->path = path;
      bad->at = offset;
    }
    bool is_bad =
        path == bad->path && offset <= bad->at && (offset == bad->at || length > bad->at - offset);
    return is_bad ? std::optional(Error{ErrorKind::kIo, "bad block", {path, offset}})
                  : std::nullopt;
  }
};
std::optional<Error> never(const std::string&, const std::string&) {
  return std::nullopt;
}

}  // namespace

TEST_CASE(
    "a repair whose result cannot be read back at any byte is gone on with without that file") {
  TemporaryFolder folder;
  write_row_tiles(folder / "ckpt");
  auto before = files_under(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of_rows(*checkpoint, true);
  bool finished = false;
  int read = 0, kept = 0;
  for (; !finished && read < 500; ++read) {
    CAPTURE(read);
    FaultyStore store(posix_store(), never, NthRead{read});
    auto result = apply_plan(store, *checkpoint, plan, {folder / "out"});
    finished = result.has_value();
    CHECK(std::filesystem::exists(folder / "out") == finished);
    CHECK(files_under(folder / "ckpt") == before);
    const auto there = std::distance(std::filesystem::directory_iterator(folder.path()),
                                     std::filesystem::directory_iterator());
    if (finished) {
      CHECK(there == 2);
      break;
    }
    const bool is_kept = result.error().advice.find("shardwright resume") != std::string::npos;
    CHECK(there == (is_kept ? 2 : 1));
    if (!is_kept) continue;
    ++kept;
    // The disk keeps this bad byte as long as the file exists.
    const std::string bad = result.error().place.file;
    auto again = apply_plan(*checkpoint, plan, {folder / "out"});
    if (!again) FAIL(again.error().message);
    CHECK(again->files_kept == (bad.ends_with(".distcp") ? 1 : 2));
    CHECK(verify_repair(folder / "out")->outcome == VerifyReport::Outcome::kProved);
    std::filesystem::remove_all(folder / "out");
  }
  CHECK(finished);
  CHECK(read > 2);
  CHECK(kept > 2);
}

TEST_CASE("a source that cannot be read at any byte is repaired nowhere and never in part") {
  TemporaryFolder folder;
  write_row_tiles(folder / "ckpt");
  auto before = files_under(folder / "ckpt");
  for (bool in_place : {false, true}) {
    bool finished = false;
    int read = 0;
    for (; !finished && read < 500; ++read) {
      CAPTURE(in_place);
      CAPTURE(read);
      FaultyStore store(posix_store(), never, NthRead{read});
      auto checkpoint = open_checkpoint(store.read_folder(folder / "ckpt").value());
      if (!checkpoint) continue;
      ApplyOptions options{in_place ? "" : folder / "out", in_place};
      auto result = apply_plan(store, **checkpoint, plan_of_rows(**checkpoint, !in_place), options);
      finished = result.has_value();
      CHECK(std::filesystem::exists(folder / "out") == (finished || in_place));
      if (!finished || !in_place) CHECK(files_under(folder / "ckpt") == before);
    }
    CHECK(finished);
    CHECK(read > 2);
  }
}

TEST_CASE("a verdict whose files cannot be read at any byte never says proved") {
  TemporaryFolder folder;
  write_row_tiles(folder / "ckpt");
  auto source = opened(folder / "ckpt");
  REQUIRE(apply_plan(*source, plan_of_rows(*source, true), {folder / "out"}).has_value());
  bool proved = false;
  int read = 0;
  for (; !proved && read < 500; ++read) {
    CAPTURE(read);
    NthRead fault{read};
    FaultyStore store(posix_store(), never, fault);
    auto checkpoint = open_checkpoint(store.read_folder(folder / "out").value());
    if (!checkpoint) continue;
    auto report = verify_repair(**checkpoint);
    proved = report && report->outcome == VerifyReport::Outcome::kProved;
    CHECK(proved == (*fault.asked <= read));
  }
  CHECK(proved);
  CHECK(read > 2);
}

namespace {

// Tiles of rows in a store that counts bytes read of their files from here on.
struct CountedRows {
  TemporaryFolder folder;
  std::shared_ptr<std::atomic<std::uint64_t>> read =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  FaultyStore store{posix_store(), never,
                    [read = read](const std::string& path, std::uint64_t,
                                  std::size_t length) -> std::optional<Error> {
                      if (path.ends_with(".distcp")) *read += length;
                      return std::nullopt;
                    }};
  std::shared_ptr<const Checkpoint> source;
  Plan plan;
  std::uint64_t size = 0;  // of those files

  CountedRows() {
    write_row_tiles(folder / "ckpt");
    auto opened = open_checkpoint(store.read_folder(folder / "ckpt").value());
    REQUIRE(opened.has_value());
    source = *opened;
    plan = plan_of_rows(*source, false);
    for (const FileRow& file : source->files()) {
      if (file.path.ends_with(".distcp")) size += file.size;
    }
    *read = 0;
  }
};

}  // namespace

TEST_CASE("the item of a tile that is copied is read from its source while it is copied") {
  CountedRows rows;
  auto repaired = apply_plan(posix_store(), *rows.source, rows.plan, {rows.folder / "out"});
  REQUIRE(repaired.has_value());
  // Bytes of shared blocks are not passed to the hasher while copying, so they are read for their
  // hash.
  CHECK(*rows.read == (shares_bytes(rows.folder) ? rows.size : 0));
  auto report = verify_repair(*opened(rows.folder / "out"));
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kProved);
}

namespace {

// "w" of [2, 3] between "a" of 480,000 bytes and "z" of as many floats.
void write_safetensors(const std::string& path, std::size_t floats_of_z) {
  std::filesystem::create_directory(path);
  const std::size_t end = 480'024 + 4 * floats_of_z;
  std::string header = R"({"a":{"dtype":"F32","shape":[120000],"data_offsets":[0,480000]},)"
                       R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[480000,480024]},)"
                       R"("z":{"dtype":"F32","shape":[)" +
                       std::to_string(floats_of_z) + R"(],"data_offsets":[480024,)" +
                       std::to_string(end) + "]}}";
  header.resize(240, ' ');
  std::string data(end, '\0');
  for (std::size_t i = 0; i < data.size(); i += 301) data[i] = static_cast<char>(1 + i % 61);
  put(path + "/model.safetensors", std::string("\xF0\0\0\0\0\0\0\0", 8) + header + data);
}

}  // namespace

TEST_CASE("a tensor that stays in a file that is recreated is read once however large") {
  // 480,000 bytes, and more bytes than one thread copies of a shared file.
  for (std::size_t floats_of_z : {std::size_t{120'000}, std::size_t{17'000'000}}) {
    CAPTURE(floats_of_z);
    TemporaryFolder folder;
    write_safetensors(folder / "ckpt", floats_of_z);
    auto read = std::make_shared<std::atomic<std::uint64_t>>(0);
    auto count = [read](const std::string&, std::uint64_t,
                        std::size_t length) -> std::optional<Error> {
      *read += length;
      return std::nullopt;
    };
    FaultyStore store(posix_store(), never, count);
    auto source = open_checkpoint(store.read_folder(folder / "ckpt").value());
    REQUIRE(source.has_value());
    Finding finding;
    finding.rule = "planted";
    finding.subjects = {"w"};
    finding.diagnoses = {Transposed{*(*source)->find("w"), 0, 1, {3, 2}}};
    CheckReport report;
    report.findings = {finding};
    auto plan = make_plan(**source, report, {});
    REQUIRE(plan.has_value());
    *read = 0;
    REQUIRE(apply_plan(posix_store(), **source, *plan, {folder / "out"}).has_value());
    const std::uint64_t kept = 480'000 + 4 * floats_of_z;
    CHECK(*read >= kept);
    CHECK(*read < kept + 200'000);
    auto made = opened(folder / "out");
    auto before = read_tensor(**source, *(*source)->find("z"));
    auto after = read_tensor(*made, *made->find("z"));
    REQUIRE(before.has_value());
    REQUIRE(after.has_value());
    CHECK(before->bytes == after->bytes);
  }
}

TEST_CASE("a repair in place reads every item once") {
  CountedRows rows;
  REQUIRE(apply_plan(rows.store, *rows.source, rows.plan, {"", true}).has_value());
  CHECK(*rows.read == rows.size);
  auto report = verify_repair(*opened(rows.folder / "ckpt"));
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kProved);
}

TEST_CASE("a copy that is not what went by is not proved") {
  TemporaryFolder folder;
  write_row_tiles(folder / "ckpt");
  auto source = opened(folder / "ckpt");
  Plan plan = plan_of_rows(*source, false);
  const std::uint64_t size = std::filesystem::file_size(folder / "ckpt/__0_0.distcp");
  // Every byte of the file belongs to an item.
  for (std::uint64_t at : {std::uint64_t{0}, size / 2, size - 1}) {
    CAPTURE(at);
    bool bent = false;
    auto bend = [&](const std::string& step, const std::string& path) -> std::optional<Error> {
      // The first operation after both files have been copied.
      if (bent || step != "create" || path != ".metadata") return std::nullopt;
      for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        std::string file = entry.path().string() + "/__0_0.distcp";
        if (entry.path() == folder / "ckpt" || !std::filesystem::exists(file)) continue;
        std::string bytes = contents(file);
        bytes[at] = static_cast<char>(bytes[at] ^ 1);
        put(file, bytes);
        bent = true;
      }
      return std::nullopt;
    };
    FaultyStore store(posix_store(), bend);
    CHECK_FALSE(apply_plan(store, *source, plan, {folder / "out"}).has_value());
    CHECK(bent);
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
  }
}

TEST_CASE("a list of hashes of the source's files is not copied") {
  TemporaryFolder folder;
  write_row_tiles(folder / "ckpt");
  put(folder / "ckpt/integrity.json", "{}");
  put(folder / "ckpt/config.json", "{}");
  auto source = opened(folder / "ckpt");
  REQUIRE(apply_plan(*source, plan_of_rows(*source, true), {folder / "out"}).has_value());
  CHECK(std::filesystem::exists(folder / "out/config.json"));
  CHECK_FALSE(std::filesystem::exists(folder / "out/integrity.json"));
}
