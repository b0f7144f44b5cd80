// A saved view of the desktop that is opened again: the same tensor, tile and finding.
#include "core/verbs/view_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/session/session.h"
#include "core/temporary_folder.h"
#include "core/verbs/place_mark.h"

using namespace shw;
using namespace shw::test;

namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Snapshot> ended(Session& session, std::vector<Command> commands) {
  for (Command& command : commands) session.apply(std::move(command));
  session.wait();
  return session.snapshot();
}

std::string text_of_place(const Snapshot& s) {
  return std::string(s.checkpoint->fqn(s.tensor.value())) + " | " +
         tile_mark(*s.checkpoint, s.chunk.value()) + " | " +
         finding_mark(s.report->findings[s.finding.value()]);
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a saved view opens at the same tensor, tile and finding, by its file alone") {
  TemporaryFolder folder;
  const std::string data = std::string(SHW_TEST_DATA) + "/torch-2.14/s5_tp_axis_dropped/";
  fs::copy(data + "ckpt", folder / "ckpt");
  fs::copy(data + "spec.json", folder / "spec.json");
  Session session;
  auto before = ended(
      session, {OpenCommand{folder / "ckpt", folder / "spec.json"}, CheckCommand{Depth::kHeaders}});
  REQUIRE(before->report != nullptr);
  REQUIRE(before->report->findings.size() > 1);
  const std::string fqn(before->checkpoint->fqn(TensorId{2}));
  const ChunkId tile = before->checkpoint->chunks(TensorId{2})[1];
  before = ended(session, {SelectFindingCommand{1}, SelectTensorCommand{fqn},
                           SelectChunkCommand{tile}, SaveViewCommand{}});
  REQUIRE(before->saved_view != nullptr);
  CHECK(before->saved_view->path.ends_with(".shardwright"));
  const std::string place = text_of_place(*before);

  Session other;
  auto after = ended(other, {OpenCommand{before->saved_view->path}, CheckCommand{}});
  REQUIRE_MESSAGE(!after->error.has_value(), after->error->message);
  CHECK(text_of_place(*after) == place);
  CHECK(after->report->depth == Depth::kHeaders);
  CHECK(after->options.spec == folder / "spec.json");

  // The place stays the same after a reload.
  after = ended(other, {reopen_command(*after, after->options.checkpoint), CheckCommand{}});
  CHECK(text_of_place(*after) == place);
}

TEST_CASE("a view that names what is gone opens all the same") {
  TemporaryFolder folder;
  fs::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt", folder / "ckpt");
  put(folder / "v.shardwright",
      R"({"schema": "shardwright-view/1", "checkpoint": "ckpt", "tensor": "no such", "tile": "[0:1]"})");
  Session session;
  auto after = ended(session, {OpenCommand{folder / "v.shardwright"}, CheckCommand{}});
  REQUIRE_MESSAGE(!after->error.has_value(), after->error->message);
  CHECK(after->options.checkpoint == folder / "ckpt");
  CHECK_FALSE(after->chunk.has_value());
}

TEST_CASE("what is remembered opens without a spec that is gone, and that is said") {
  TemporaryFolder folder;
  fs::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt", folder / "ckpt");
  OpenCommand open{folder / "ckpt", folder / "gone.json"};
  Session session;
  auto after = ended(session, {open});
  REQUIRE(after->error.has_value());
  open.remembered = true;
  auto parsed = parse_command(to_text(Command{open}));
  REQUIRE(parsed.has_value());
  CHECK(std::get<OpenCommand>(*parsed).remembered);
  CHECK(std::get<OpenCommand>(*parsed).spec == open.spec);
  after = ended(session, {open, CheckCommand{}});
  REQUIRE_MESSAGE(!after->error.has_value(), after->error->message);
  CHECK(after->options.spec.empty());
  REQUIRE(after->left_aside.size() == 1);
  CHECK(after->left_aside.front().ends_with("gone.json"));
}

TEST_CASE("what is not a view is refused, and nothing else is read from it") {
  TemporaryFolder folder;
  for (const char* text :
       {"", "{", "[]", "{}", R"({"schema": "shardwright-view/2", "checkpoint": "a"})",
        R"({"schema": "shardwright-view/1"})",
        R"({"schema": "shardwright-view/1", "checkpoint": 5})",
        R"({"schema": "shardwright-view/1", "checkpoint": "a", "depth": "deep"})"}) {
    put(folder / "v.shardwright", text);
    auto view = verbs::read_view_file(folder / "v.shardwright");
    REQUIRE_FALSE_MESSAGE(view.has_value(), text);
    CHECK(view.error().kind == ErrorKind::kDamaged);
  }
  put(folder / "v.shardwright", std::string(2 << 20, ' '));
  CHECK_FALSE(verbs::read_view_file(folder / "v.shardwright").has_value());
}

TEST_CASE(
    "report: a view that was saved in the session is drawn with its tensor, tile and finding") {
  TemporaryFolder folder;
  const std::string data = std::string(SHW_TEST_DATA) + "/torch-2.14/s5_tp_axis_dropped/";
  fs::copy(data + "ckpt", folder / "ckpt");
  fs::copy(data + "spec.json", folder / "spec.json");
  Session session;
  auto now = ended(session, {OpenCommand{folder / "ckpt", folder / "spec.json"}, CheckCommand{},
                             ReportCommand{folder / "before.html"}});
  REQUIRE(now->written != nullptr);
  const std::string fqn(now->checkpoint->fqn(TensorId{2}));
  const ChunkId tile = now->checkpoint->chunks(TensorId{2})[1];
  // A selection does not wait for a file that is being written.
  ended(session, {SelectTensorCommand{fqn}, SelectChunkCommand{tile}, SaveViewCommand{}});
  ended(session, {SaveViewCommand{folder / "again.shardwright"}});
  now = ended(session, {SelectTensorCommand{std::string(now->checkpoint->fqn(TensorId{0}))},
                        ReportCommand{folder / "after.html"}});
  REQUIRE(now->saved_views != nullptr);
  CHECK(now->saved_views->size() == 1);  // the second view is of the same place
  const std::string before = text_of(folder / "before.html"),
                    after = text_of(folder / "after.html");
  CHECK(before.find("Saved views") == std::string::npos);
  const std::size_t section = after.find("Saved views");
  REQUIRE(section != std::string::npos);
  CHECK(after.find(tile_mark(*now->checkpoint, tile), section) != std::string::npos);
  CHECK(after.find("Tiles of <code>" + fqn, section) != std::string::npos);
}

TEST_CASE("report: a view of another checkpoint is refused") {
  TemporaryFolder folder;
  const std::string data = std::string(SHW_TEST_DATA) + "/torch-2.14/s5_tp_axis_dropped/";
  fs::copy(data + "ckpt", folder / "ckpt");
  fs::copy(data + "ckpt", folder / "other");
  Session session;
  auto now = ended(session, {OpenCommand{folder / "ckpt"}, CheckCommand{}});
  const std::string fqn(now->checkpoint->fqn(TensorId{0}));
  now = ended(session, {SelectTensorCommand{fqn}, SaveViewCommand{}});
  REQUIRE(now->saved_view != nullptr);
  const std::vector<std::string> files{now->saved_view->path};
  VerbOptions options;
  options.checkpoint = folder / "ckpt";
  auto views = verbs::read_page_views(verb_inputs(*now), options, files);
  REQUIRE(views.has_value());
  CHECK(views->size() == 1);
  options.checkpoint = folder / "other";
  CHECK_FALSE(verbs::read_page_views(verb_inputs(*now), options, files).has_value());
}
