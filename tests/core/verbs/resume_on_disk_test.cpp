// Killed repairs on the local disk, and resuming them.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/dead_process.h"
#include "core/exec/journal.h"
#include "core/faulty_store.h"
#include "core/io/path_text.h"
#include "core/repair/row_plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"
#include "core/verbs/killed_repair.h"
#include "core/verbs/resume.h"

using namespace shw;
using namespace shw::test;

namespace {

// A repair on this machine's disk that was killed after all data was written, by a process that has
// ended.
struct KilledOnDisk {
  TemporaryFolder folder;
  Files wanted;
  std::string partial;

  KilledOnDisk() {
    write_three(folder / "ckpt");
    auto checkpoint = opened(folder / "ckpt");
    Plan plan = plan_of_rows(*checkpoint, true);
    REQUIRE(apply_plan(*checkpoint, plan, {folder / "whole"}));
    wanted = files_below(posix_store(), folder / "whole");
    bool dead = false;
    FaultyStore dying(posix_store(), [&](const std::string& step, const std::string& path) {
      dead = dead || (step == "create" && path == ".metadata");
      return dead ? std::optional<Error>(Error{ErrorKind::kIo, "killed", {path}}) : std::nullopt;
    });
    REQUIRE_FALSE(apply_plan(dying, *checkpoint, plan, {folder / "out"}));
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      std::string path = entry.path().string();
      if (path.find(kPartialMark) != std::string::npos) partial = path;
    }
    REQUIRE_FALSE(partial.empty());
    put(partial + "/" + kOwnerFile, dead_process());
  }
  Result<verbs::ResumeResult> resume(const std::string& name) {
    return verbs::resume(posix_store(), name, {});
  }
};

}  // namespace

TEST_CASE("the name of the output and that of the half-made folder resume the same run") {
  for (bool by_partial : {false, true}) {
    KilledOnDisk killed;
    auto resumed = killed.resume(by_partial ? killed.partial + "/" : killed.folder / "out");
    if (!resumed) FAIL(resumed.error().message);
    CHECK_FALSE(resumed->was_already_finished);
    CHECK(resumed->result.output == killed.folder / "out");
    CHECK(resumed->result.files_kept == killed.wanted.size() - 2);
    Files made = files_below(posix_store(), killed.folder / "out");
    // These two contain the folder's name.
    for (const char* path : {".metadata", "certificate.json"}) {
      made.erase(path);
      killed.wanted.erase(path);
    }
    CHECK(made == killed.wanted);
    CHECK(verify_repair(killed.folder / "out")->outcome == VerifyReport::Outcome::kProved);
    CHECK_FALSE(posix_store().exists(killed.partial));
    auto again = killed.resume(killed.folder / "out");
    REQUIRE(again.has_value());
    CHECK(again->was_already_finished);
    CHECK(again->result.certificate == killed.folder / "out/certificate.json");
  }
}

TEST_CASE("a folder that was moved is gone on with where it is") {
  KilledOnDisk killed;
  std::filesystem::create_directory(killed.folder / "there");
  std::filesystem::rename(killed.partial, killed.folder / "there/other.shardwright-partial-1");
  auto resumed = killed.resume(killed.folder / "there/other");
  if (!resumed) FAIL(resumed.error().message);
  CHECK(resumed->result.output == killed.folder / "there/other");
  CHECK(verify_repair(killed.folder / "there/other")->outcome == VerifyReport::Outcome::kProved);
}

TEST_CASE("resume: a half-made folder that others may write to, or a link, is not gone on with") {
  using std::filesystem::perms;
  for (bool is_link : {false, true}) {
    KilledOnDisk killed;
    if (is_link) {
      std::filesystem::rename(killed.partial, killed.folder / "elsewhere");
      std::filesystem::create_directory_symlink(killed.folder / "elsewhere", killed.partial);
    } else {
      std::filesystem::permissions(killed.partial, perms::all);
    }
    auto resumed = killed.resume(killed.folder / "out");
    REQUIRE_FALSE(resumed.has_value());
    CHECK(resumed.error().kind == ErrorKind::kUsage);
    CHECK_FALSE(posix_store().exists(killed.folder / "out"));
    // A new repair uses nothing of it.
    auto checkpoint = opened(killed.folder / "ckpt");
    auto made = apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), {killed.folder / "out"});
    REQUIRE(made.has_value());
    CHECK(made->files_kept == 0);
  }
}

TEST_CASE("a result: where another run was first nothing half-made is left") {
  TemporaryFolder folder;
  write_three(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  FaultyStore late(posix_store(), [&](const std::string& step, const std::string& path) {
    if (step == "create" && path == "certificate.json" &&
        std::filesystem::create_directory(folder / "out"))
      put(folder / "out/file", "1");
    return std::optional<Error>();
  });
  REQUIRE_FALSE(apply_plan(late, *checkpoint, plan_of_rows(*checkpoint, true), {folder / "out"}));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    CHECK(entry.path().string().find(kPartialMark) == std::string::npos);
}

TEST_CASE("a result: it is for no other eyes than the checkpoint that it is made of") {
  using std::filesystem::perms;
  TemporaryFolder folder;
  write_three(folder / "ckpt");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "ckpt"))
    std::filesystem::permissions(entry.path(), perms::owner_all);
  std::filesystem::permissions(folder / "ckpt", perms::owner_all);
  auto checkpoint = opened(folder / "ckpt");
  REQUIRE(apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), {folder / "out"}));
  CHECK(std::filesystem::status(folder / "out").permissions() == perms::owner_all);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "out"))
    CHECK((entry.status().permissions() & (perms::group_all | perms::others_all)) == perms::none);
}

TEST_CASE("a result: a file that is a link out of the checkpoint is left out and said") {
  TemporaryFolder folder;
  write_three(folder / "ckpt");
  put(folder / "secret", "for other eyes");
  std::filesystem::create_symlink(folder / "secret", folder / "ckpt/notes.txt");
  put(folder / "ckpt/readme.txt", "is copied");
  auto checkpoint = opened(folder / "ckpt");
  auto made = apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), {folder / "out"});
  REQUIRE(made.has_value());
  CHECK_FALSE(posix_store().exists(folder / "out/notes.txt"));
  CHECK(contents(folder / "out/readme.txt") == "is copied");
  REQUIRE(made->left_out.size() == 1);
  CHECK(made->left_out.front().find("notes.txt") != std::string::npos);
}

TEST_CASE("an input that changed is named, and nothing is gone on with") {
  KilledOnDisk killed;
  put(killed.folder / "ckpt/__1_0.distcp", "other");
  auto resumed = killed.resume(killed.folder / "out");
  REQUIRE_FALSE(resumed.has_value());
  CHECK(resumed.error().kind == ErrorKind::kDamaged);
  CHECK(resumed.error().place.file.ends_with("/ckpt/__1_0.distcp"));
  CHECK(posix_store().exists(killed.partial));
  CHECK_FALSE(posix_store().exists(killed.folder / "out"));
}

TEST_CASE("a durable file that is damaged afterwards is found when the result is proved") {
  KilledOnDisk killed;
  std::string path = killed.partial + "/__0_0.distcp";
  std::string bytes = contents(path);
  if (bytes.empty()) {
    path = killed.partial + "/__2_0.distcp";
    bytes = contents(path);
  }
  REQUIRE_FALSE(bytes.empty());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  put(path, bytes);
  CHECK_FALSE(killed.resume(killed.folder / "out").has_value());
  CHECK_FALSE(posix_store().exists(killed.folder / "out"));
}

TEST_CASE("an input whose bytes were changed behind its time is read again") {
  KilledOnDisk killed;
  const std::string path = killed.folder / "ckpt/__1_0.distcp";
  std::string bytes = contents(path);
  // The last element of its tile: the payload is the last part of the item that ends in numbers.
  const auto time = std::filesystem::last_write_time(path);
  auto folder = open_directory(killed.folder / "ckpt");
  REQUIRE(folder.has_value());
  const Entry before = (*folder)->stat("__1_0.distcp");
  auto checkpoint = opened(killed.folder / "ckpt");
  auto old = read_tensor(*checkpoint, TensorId{0});
  REQUIRE(old.has_value());
  const std::string row(reinterpret_cast<const char*>(old->bytes.data()) + old->bytes.size() - 8,
                        8);
  const std::size_t at = bytes.find(row);
  REQUIRE(at != std::string::npos);
  bytes[at + 7] = static_cast<char>(bytes[at + 7] ^ 1);
  // The file system's clock may be still for some milliseconds.
  for (Entry now = before; now.changed_ns == before.changed_ns;
       now = (*folder)->stat("__1_0.distcp")) {
    put(path, bytes);
    std::filesystem::last_write_time(path, time);
  }
  CHECK((*folder)->stat("__1_0.distcp").modified_ns == before.modified_ns);
  // The changed input is detected.
  auto resumed = killed.resume(killed.folder / "out");
  REQUIRE_FALSE(resumed.has_value());
  CHECK(resumed.error().message.find("does not match its checksum") != std::string::npos);
  CHECK_FALSE(posix_store().exists(killed.folder / "out"));
}

TEST_CASE("what is next to the items of a copy that was made is the source's when a run goes on") {
  KilledOnDisk killed;
  const std::string path = killed.partial + "/beside/config.json";
  REQUIRE(contents(path) == "{}");
  put(path, "[]");
  auto resumed = killed.resume(killed.folder / "out");
  if (!resumed) FAIL(resumed.error().message);
  CHECK(resumed->result.files_kept == killed.wanted.size() - 3);
  CHECK(contents(killed.folder / "out/beside/config.json") == "{}");
}

TEST_CASE("a durable file that is gone or cut short is made again") {
  for (bool gone : {true, false}) {
    KilledOnDisk killed;
    for (const auto& entry : std::filesystem::directory_iterator(killed.partial)) {
      if (entry.path().extension() != ".distcp") continue;
      if (gone)
        std::filesystem::remove(entry.path());
      else
        std::filesystem::resize_file(entry.path(), 10);
    }
    put(killed.partial + "/what.nobody.planned", "x");
    auto resumed = killed.resume(killed.folder / "out");
    if (!resumed) FAIL(resumed.error().message);
    CHECK(resumed->result.files_kept == 1);
    CHECK_FALSE(posix_store().exists(killed.folder / "out/what.nobody.planned"));
    CHECK(verify_repair(killed.folder / "out")->outcome == VerifyReport::Outcome::kProved);
  }
}

TEST_CASE("a journal that was edited, or is of another run, is refused") {
  KilledOnDisk killed;
  std::string path = killed.partial + "/" + kJournalFile, text = contents(path);
  for (std::size_t at : {std::size_t{3}, text.size() / 3}) {
    std::string edited = text;
    edited[at] = edited[at] == 'a' ? 'b' : 'a';
    put(path, edited);
    auto resumed = killed.resume(killed.folder / "out");
    REQUIRE_FALSE(resumed.has_value());
    CHECK(resumed.error().kind == ErrorKind::kDamaged);
    CHECK(resumed.error().place.file == path);
  }
  // Well-formed, but of another program and another verb.
  auto folder = open_directory(killed.partial);
  REQUIRE(folder.has_value());
  put(path, text);
  for (bool verb : {true, false}) {
    auto journal = read_journal(**folder);
    REQUIRE(journal.has_value());
    if (verb)
      journal->header.request = R"({"verb": "levitate"})";
    else
      journal->header.program = std::string(32, '0');
    std::filesystem::remove(path);
    auto writable = posix_store().edit_folder(killed.partial);
    REQUIRE(Journal::begin(**writable, *journal));
    auto resumed = killed.resume(killed.folder / "out");
    REQUIRE_FALSE(resumed.has_value());
    CHECK(resumed.error().kind == (verb ? ErrorKind::kUnsupported : ErrorKind::kDamaged));
    put(path, text);
  }
  CHECK(killed.resume(killed.folder / "out").has_value());
}

TEST_CASE("what another process makes is neither resumed nor taken away") {
  KilledOnDisk killed;
  put(killed.partial + "/" + kOwnerFile, own_process_identity());
  for (const std::string& name : {killed.folder / "out", killed.partial}) {
    auto resumed = killed.resume(name);
    REQUIRE_FALSE(resumed.has_value());
    CHECK(resumed.error().kind == ErrorKind::kUsage);
    CHECK_FALSE(verbs::roll_back(posix_store(), name).has_value());
  }
  CHECK(posix_store().exists(killed.partial));
  std::filesystem::remove(killed.partial + "/" + kOwnerFile);
  CHECK(verbs::roll_back(posix_store(), killed.folder / "out").value() ==
        std::vector{killed.partial});
  CHECK_FALSE(posix_store().exists(killed.partial));
}

TEST_CASE("where nothing was killed there is nothing to go on with or to take away") {
  TemporaryFolder folder;
  write_three(folder / "ckpt");
  for (const char* name : {"ckpt", "out", "x.shardwright-partial-1", "no/where"}) {
    CAPTURE(name);
    auto resumed = verbs::resume(posix_store(), folder / name, {});
    REQUIRE_FALSE(resumed.has_value());
    CHECK(resumed.error().kind == ErrorKind::kUsage);
    auto rolled_back = verbs::roll_back(posix_store(), folder / name);
    REQUIRE_FALSE(rolled_back.has_value());
    CHECK(rolled_back.error().kind == ErrorKind::kUsage);
  }
}

TEST_CASE("another plan for the same output takes away what was begun, another output leaves it") {
  KilledOnDisk killed;
  auto checkpoint = opened(killed.folder / "ckpt");
  REQUIRE(apply_plan(*checkpoint, plan_of_rows(*checkpoint, true), {killed.folder / "elsewhere"}));
  CHECK(posix_store().exists(killed.partial));
  auto result = apply_plan(*checkpoint, plan_of_rows(*checkpoint, false), {killed.folder / "out"});
  REQUIRE(result.has_value());
  CHECK(result->files_kept == 0);
  CHECK_FALSE(posix_store().exists(killed.partial));
}

TEST_CASE("a cancel that is to be gone on with keeps what is finished") {
  TemporaryFolder folder;
  write_three(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of_rows(*checkpoint, true);
  for (bool keeps : {false, true}) {
    Progress progress;
    progress.keeps = keeps;
    FaultyStore store(posix_store(), [&](const std::string& step, const std::string& path) {
      if (step == "create" && path == ".metadata") progress.cancel();
      return std::optional<Error>();
    });
    auto stopped = apply_plan(store, *checkpoint, plan, {folder / "out"}, &progress);
    REQUIRE_FALSE(stopped.has_value());
    CHECK(stopped.error().kind == ErrorKind::kCancelled);
    CHECK((stopped.error().advice.find("resume") != std::string::npos) == keeps);
    auto partials = posix_store().names(folder.path());
    bool left = std::any_of(partials.begin(), partials.end(), [](const std::string& name) {
      return name.find(kPartialMark) != std::string::npos;
    });
    CHECK(left == keeps);
  }
}

TEST_CASE("what was cancelled to be gone on with is gone on with by the same process too") {
  TemporaryFolder folder;
  write_three(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of_rows(*checkpoint, true);
  REQUIRE(apply_plan(*checkpoint, plan, {folder / "wanted"}).has_value());
  auto stop = [&](const std::string& out) {
    Progress progress;
    progress.keeps = true;
    FaultyStore store(posix_store(), [&](const std::string& step, const std::string& path) {
      if (step == "create" && path == ".metadata") progress.cancel();
      return std::optional<Error>();
    });
    REQUIRE_FALSE(apply_plan(store, *checkpoint, plan, {out}, &progress).has_value());
  };
  auto payloads = [&](const std::string& name) {
    Files files = files_below(posix_store(), folder / name);
    std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".distcp"); });
    return files;
  };
  stop(folder / "resumed");
  auto resumed = verbs::resume(posix_store(), folder / "resumed", {});
  if (!resumed) FAIL(resumed.error().message);
  CHECK(resumed->result.files_kept > 0);
  CHECK(payloads("resumed") == payloads("wanted"));
  // A repeated repair finds the leftovers too.
  stop(folder / "again");
  auto again = apply_plan(*checkpoint, plan, {folder / "again"});
  if (!again) FAIL(again.error().message);
  CHECK(again->files_kept > 0);
  CHECK(payloads("again") == payloads("wanted"));
  stop(folder / "taken");
  CHECK(verbs::roll_back(posix_store(), folder / "taken").has_value());
}
