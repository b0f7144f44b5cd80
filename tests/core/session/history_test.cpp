#include "core/session/history.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/session/session.h"
#include "core/temporary_folder.h"
#include "core/verbs/recent.h"

using namespace shw;

namespace {

const std::string kCases = std::string(SHW_TEST_DATA) + "/torch-2.14/";

Visit visit(const char* path, const char* fqn = "") {
  return {path, "", "", "", fqn};
}

void open(Session& session, const std::string& path) {
  session.apply({OpenCommand{path}, CheckCommand{}});
  session.wait();
}

std::string selected(const Session& session) {
  auto snapshot = session.snapshot();
  return snapshot->tensor ? std::string(snapshot->checkpoint->fqn(*snapshot->tensor)) : "";
}

}  // namespace

TEST_CASE("steps lead back and forward, and a new place ends what was ahead") {
  History history;
  CHECK_FALSE(history.can_go(-1));
  for (const Visit& each : {visit("a"), visit("a", "x"), visit("a", "y"), visit("b", "z")})
    history.note(each);
  REQUIRE(history.go(-1) == visit("a", "y"));
  history.note(visit("b", "z"));  // not there yet
  CHECK(history.can_go(1));
  history.note(visit("a"));  // opened, while the tensor is being read
  history.note(visit("a", "y"));
  CHECK(history.now()->fqn == "y");
  REQUIRE(history.go(-1) == visit("a", "x"));
  history.note(visit("a", "x"));
  CHECK_FALSE(history.can_go(-1));  // an open checkpoint without a tensor is not a place
  REQUIRE(history.go(1) == visit("a", "y"));
  history.note(visit("a", "y"));
  history.note(visit("a", "q"));
  CHECK_FALSE(history.can_go(1));
  CHECK(history.go(-1) == visit("a", "y"));
  history.stay();
  CHECK(history.now()->fqn == "q");
}

TEST_CASE("after another checkpoint was opened the first is one step back, with its tensor") {
  Session session;
  open(session, kCases + "healthy_fsdp/ckpt");
  std::string fqn(session.snapshot()->checkpoint->fqn(TensorId{2}));
  session.apply(SelectTensorCommand{fqn});
  session.wait();
  open(session, kCases + "healthy_moe_ep/ckpt");
  auto second = session.snapshot();
  CHECK(second->can_go_back);
  CHECK_FALSE(second->can_go_forward);
  session.apply(GoCommand{-1});
  session.wait();
  CHECK(session.snapshot()->options.checkpoint == kCases + "healthy_fsdp/ckpt");
  CHECK(session.snapshot()->report != nullptr);
  CHECK(selected(session) == fqn);
  CHECK(session.snapshot()->can_go_forward);
  session.apply(GoCommand{1});
  session.wait();
  CHECK(session.snapshot()->options.checkpoint == kCases + "healthy_moe_ep/ckpt");
  CHECK_FALSE(session.snapshot()->can_go_forward);
  session.apply(GoCommand{1});  // there is none
  session.wait();
  CHECK_FALSE(session.snapshot()->error.has_value());
}

TEST_CASE("what cannot be opened leaves what is open as it was, and says why") {
  Session session;
  open(session, kCases + "healthy_fsdp/ckpt");
  auto before = session.snapshot();
  open(session, "/no/such/checkpoint");
  auto after = session.snapshot();
  CHECK(after->checkpoint == before->checkpoint);
  CHECK(after->report == before->report);
  CHECK(after->options.checkpoint == before->options.checkpoint);
  REQUIRE(after->error.has_value());
  CHECK(after->error->place.file == "/no/such/checkpoint");
  CHECK_FALSE(after->can_go_back);
}

TEST_CASE("a step back to a checkpoint that is gone stays where one is") {
  TemporaryFolder folder;
  std::filesystem::copy(kCases + "healthy_fsdp/ckpt", folder / "ckpt");
  Session session;
  open(session, folder / "ckpt");
  open(session, kCases + "healthy_moe_ep/ckpt");
  std::filesystem::remove_all(folder / "ckpt");
  session.apply(GoCommand{-1});
  session.wait();
  CHECK(session.snapshot()->options.checkpoint == kCases + "healthy_moe_ep/ckpt");
  CHECK(session.snapshot()->error.has_value());
}

TEST_CASE("commands of opening are written and read") {
  for (const char* line : {"browse", "browse ~/runs/", "go back", "go forward",
                           "open /a/b spec s.json mesh dp=4 tensor model.weight"}) {
    CAPTURE(line);
    auto command = parse_command(line);
    REQUIRE(command.has_value());
    CHECK(to_text(*command) == line);
  }
  CHECK_FALSE(parse_command("go").has_value());
}

TEST_CASE("a session lists folders part by part, and keeps what was opened with its verdict") {
  TemporaryFolder folder;
  for (int i = 0; i < 40; ++i) std::filesystem::create_directories(folder / std::to_string(i));
  Session session;
  session.set_recent_places_file(folder / "state/recent.json");
  session.apply(BrowseCommand{folder.path() + "/"});
  session.wait();
  REQUIRE(session.snapshot()->folder != nullptr);
  CHECK(session.snapshot()->folder->is_complete());
  CHECK(session.snapshot()->folder->places.size() == 40);
  open(session, kCases + "healthy_fsdp/ckpt");
  REQUIRE(session.snapshot()->recent != nullptr);
  REQUIRE(session.snapshot()->recent->size() == 1);
  CHECK(session.snapshot()->recent->front().verdict == "clean");
  CHECK(verbs::read_recent(folder / "state/recent.json") == *session.snapshot()->recent);
}
