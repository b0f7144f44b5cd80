#include "core/io/owner.h"

#include <doctest/doctest.h>
#include <signal.h>

#include "core/dead_process.h"
#include "core/faulty_store.h"
#include "core/io/path_text.h"
#include "core/io/source.h"
#include "core/io/store.h"
#include "core/memory_store.h"
#include "core/temporary_folder.h"

using namespace shw;
using test::dead_process;

namespace {

std::string with_line(std::string text, int line, const std::string& value) {
  std::size_t at = 0;
  for (int i = 0; i < line; ++i) at = text.find('\n', at) + 1;
  return text.replace(at, text.find('\n', at) - at, value);
}

}  // namespace

TEST_CASE(
    "a process that ended here is dead, one that runs, or ran elsewhere, is not known to be") {
  std::string dead = dead_process(), alive = own_process_identity();
  CHECK(is_dead_process(dead));
  CHECK_FALSE(is_dead_process(alive));
  CHECK_FALSE(is_dead_process(with_line(dead, 0, "another-host")));
  CHECK_FALSE(is_dead_process(with_line(dead, 1, "another boot")));
  CHECK_FALSE(is_dead_process(with_line(dead, 2, "pid:[1]")));
  // The pid belongs to another process now.
  CHECK(is_dead_process(with_line(alive, 4, "1")));
  for (const char* text : {"", "\n\n\n\n\n", "one line", "a\nb\nc\nd\ne\n"})
    CHECK_FALSE(is_dead_process(text));
  for (const char* pid : {"0", "-1", "99999999999999999999", "1x", ""})
    CHECK_FALSE(is_dead_process(with_line(dead, 3, pid)));
}

TEST_CASE("a process that was killed and that nobody waited for is dead") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t child = ::fork();
  if (child == 0) {
    std::string text = own_process_identity();
    static_cast<void>(::write(ends[1], text.data(), text.size()) == 0);
    ::pause();
  }
  std::string text(4096, '\0');
  ssize_t length = ::read(ends[0], text.data(), text.size());
  REQUIRE(length > 0);
  text.resize(static_cast<std::size_t>(length));
  CHECK_FALSE(is_dead_process(text));
  ::kill(child, SIGKILL);
  // The process has ended but was not waited for yet.
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(is_dead_process(text));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("only what a dead process of this machine left is swept") {
  TemporaryFolder folder;
  auto make = [&](const std::string& name, const std::string& owner) {
    std::filesystem::create_directories(folder / name + "/sub");
    put(folder / name + "/sub/__0_0.distcp", "data");
    if (!owner.empty()) put(folder / name + "/" + kOwnerFile, owner);
  };
  std::string dead = dead_process();
  make("out.shardwright-partial-1", dead);
  make("other.shardwright-partial-2", dead);
  make("out.shardwright-partial-3", own_process_identity());
  make("out.shardwright-partial-4", "");
  make("out.shardwright-partial-5", with_line(dead, 0, "another-host"));
  make("innocent", dead);
  std::filesystem::create_directory_symlink(folder / "innocent",
                                            folder / "link.shardwright-partial-6");
  delete_abandoned_directories(posix_store(), folder / "out", kPartialMark);
  for (int gone : {1, 2}) {
    CHECK_FALSE(posix_store().exists(folder / (gone == 1 ? "out" : "other") +
                                     ".shardwright-partial-" + std::to_string(gone)));
  }
  for (int stays : {3, 4, 5})
    CHECK(posix_store().exists(folder / "out.shardwright-partial-" + std::to_string(stays)));
  CHECK(posix_store().exists(folder / "innocent/sub/__0_0.distcp"));
  CHECK(posix_store().exists(folder / "link.shardwright-partial-6"));
}

TEST_CASE("what is spared is not swept") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a.shardwright-partial-1");
  put(folder / "a.shardwright-partial-1/" + kOwnerFile, dead_process());
  std::string seen;
  delete_abandoned_directories(posix_store(), folder / "a", kPartialMark,
                               [&](const std::string& found) {
                                 seen = found;
                                 return true;
                               });
  CHECK(seen == folder / "a.shardwright-partial-1");
  CHECK(posix_store().exists(seen));
}

TEST_CASE("a directory that nobody makes is taken over once, and is then this process'") {
  TemporaryFolder folder;
  Store& store = posix_store();
  std::string left = folder / "out.shardwright-partial-1";
  std::filesystem::create_directory(left);
  CHECK(owner_state(store, left) == OwnerState::kNobody);
  put(left + "/" + kOwnerFile, dead_process());
  CHECK(owner_state(store, left) == OwnerState::kDeadProcess);
  put(left + "/" + kOwnerFile + "-next", "what a process left that was killed here");
  auto taken = claim_directory(store, left, kPartialMark);
  REQUIRE(taken.has_value());
  CHECK(taken->starts_with(folder / "out.shardwright-partial-"));
  CHECK(owner_state(store, *taken) == OwnerState::kLiveProcess);
  CHECK_FALSE(claim_directory(store, left, kPartialMark).has_value());
  // The owner file is still the old one; the folder's name shows that this process has claimed it.
  put(*taken + "/" + kOwnerFile, dead_process());
  CHECK(owner_state(store, *taken) == OwnerState::kLiveProcess);
  put(*taken + "/" + kOwnerFile, with_line(own_process_identity(), 0, "another-host"));
  std::filesystem::rename(*taken, left);
  CHECK(owner_state(store, left) == OwnerState::kUnknown);
  CHECK_FALSE(claim_directory(store, folder / "out", kPartialMark).has_value());
}

TEST_CASE("what a repair is still making is not part of a folder that is listed") {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a.shardwright-partial-7/below");
  put(folder / "a.shardwright-partial-7/.metadata", "x");
  put(folder / "a.shardwright-partial-7/below/__0_0.distcp", "x");
  put(folder / "kept", "x");
  auto directory = open_directory(folder.path());
  REQUIRE(directory.has_value());
  auto entries = (*directory)->list();
  REQUIRE(entries.has_value());
  REQUIRE(entries->size() == 1);
  CHECK((*entries)[0].path == "kept");
  // Opened by its own name, it is an ordinary folder.
  auto partial = open_directory(folder / "a.shardwright-partial-7");
  REQUIRE(partial.has_value());
  CHECK((*partial)->list()->size() == 2);
}

TEST_CASE("a directory that cannot be taken over on a full disk is still nobody's") {
  MemoryStore memory;
  const std::string dead = dead_process(), path = "/out.shardwright-partial-1";
  auto bytes = std::as_bytes(std::span(dead));
  memory.put(path + "/" + kOwnerFile, {bytes.begin(), bytes.end()});
  FaultyStore full(memory, [](const std::string& step, const std::string& where) {
    return step == "write" ? std::optional<Error>(Error{ErrorKind::kIo, "full", {where}})
                           : std::nullopt;
  });
  auto taken = claim_directory(full, path, kPartialMark);
  REQUIRE_FALSE(taken.has_value());
  CHECK(memory.names("/") == std::vector<std::string>{path.substr(1)});
  CHECK(owner_state(memory, path) == OwnerState::kDeadProcess);
  CHECK(claim_directory(memory, path, kPartialMark).has_value());
}

TEST_CASE("a directory whose owner was killed before it could write its name in it is swept") {
  std::string before_owner;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string name = owner_name_suffix();
    ::_exit(::write(ends[1], name.data(), name.size()) > 0 ? 0 : 1);
  }
  ::close(ends[1]);
  before_owner.resize(256);
  const ssize_t length = ::read(ends[0], before_owner.data(), before_owner.size());
  ::close(ends[0]);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  REQUIRE(length > 0);
  before_owner.resize(static_cast<std::size_t>(length));

  TemporaryFolder scratch;
  const std::string out = scratch / "out";
  Store& store = posix_store();
  const std::string dead = out + kPartialMark + before_owner, again = dead + "-2",
                    torn = dead + "-3", alive = out + kPartialMark + owner_name_suffix(),
                    elsewhere = dead.substr(0, dead.size() - 8) + "01234567";
  for (const std::string& path : {dead, again, torn, alive, elsewhere})
    REQUIRE(store.make_folder(path).has_value());
  REQUIRE(write_text(**store.edit_folder(torn), kOwnerFile, "half of a na").has_value());
  CHECK(owner_state(store, dead) == OwnerState::kDeadProcess);
  CHECK(owner_state(store, alive) == OwnerState::kLiveProcess);
  CHECK(owner_state(store, elsewhere) == OwnerState::kNobody);
  delete_abandoned_directories(store, out, kPartialMark);
  CHECK_FALSE(store.exists(dead));
  CHECK_FALSE(store.exists(again));
  CHECK_FALSE(store.exists(torn));
  CHECK(store.exists(alive));
  CHECK(store.exists(elsewhere));
}
