#include <doctest/doctest.h>

#include "core/session/content_run.h"
#include "core/session/session.h"

using namespace shw;

namespace {

std::string fsdp() {
  return std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt";
}

Command read(const char* line) {
  auto command = parse_command(line);
  REQUIRE_MESSAGE(command.has_value(), line);
  return *command;
}

}  // namespace

TEST_CASE("commands that look into files are written and read") {
  for (const char* line : {"bytes",
                           "bytes finding",
                           "bytes next",
                           "bytes previous",
                           "bytes off",
                           "bytes at 4096",
                           "bytes file __0_0.distcp at 16",
                           "bytes file a file at noon at 3",
                           "values",
                           "values off",
                           "values [1, 0:4, 2:8]",
                           "values [0:4, 2:8] transposed",
                           "tile-values",
                           "tile-values off",
                           "tile-values of a.weight",
                           "tensor-numbers",
                           "bytes find \"a b\"",
                           "bytes find =1.5",
                           "values-save npy",
                           "values-save csv a folder/w.csv"}) {
    CAPTURE(line);
    CHECK(to_text(read(line)) == line);
  }
  CHECK(to_text(read("bytes at 0x10")) == "bytes at 16");
  for (const char* line : {"bytes at", "bytes at x", "bytes file at 3", "bytes on", "bytes x at 1",
                           "tile-values of", "tile-values x", "values-save", "values-save txt"})
    CHECK_FALSE(parse_command(line).has_value());
}

TEST_CASE("a session shows the bytes of the selected tile, walks on, and stops when left") {
  Session session;
  session.apply({OpenCommand{fsdp()}, CheckCommand{}});
  session.wait();
  auto opened = session.snapshot();
  REQUIRE(opened->checkpoint != nullptr);
  std::string fqn(opened->checkpoint->fqn(TensorId{0}));
  session.apply({SelectTensorCommand{fqn}, read("bytes")});
  session.wait();
  auto looked = session.snapshot();
  REQUIRE(looked->bytes != nullptr);
  REQUIRE(looked->bytes->window.has_value());
  CHECK(looked->bytes->window->record->name.find(fqn) == 0);
  std::uint64_t first = looked->bytes->window->at;
  session.apply(read("bytes next"));
  session.wait();
  REQUIRE(session.snapshot()->bytes->window.has_value());
  CHECK(session.snapshot()->bytes->window->at > first);
  session.apply(read("bytes at 0x20"));
  session.wait();
  CHECK(session.snapshot()->bytes->window->at == 0x20);
  session.apply(read("bytes file no/such at 0"));
  session.wait();
  CHECK(session.snapshot()->bytes->error.has_value());
  CHECK_FALSE(session.snapshot()->error.has_value());
  session.apply(read("values"));
  session.wait();
  REQUIRE(session.snapshot()->values != nullptr);
  CHECK(session.snapshot()->values->values.has_value());
  session.apply(read("values [99]"));
  session.wait();
  CHECK(session.snapshot()->values->error.has_value());
  session.apply(read("values off"));
  session.apply(read("bytes off"));
  session.wait();
  CHECK(session.snapshot()->bytes == nullptr);
  CHECK(session.snapshot()->values == nullptr);
}

TEST_CASE(
    "bytes of nothing are not an error, and a path that leaves the checkpoint is not opened") {
  Session session;
  session.apply(read("bytes"));
  session.wait();
  CHECK(session.snapshot()->bytes == nullptr);
  CHECK_FALSE(session.snapshot()->error.has_value());
  session.apply(OpenCommand{fsdp()});
  session.wait();
  session.apply(read("bytes file ../case.json at 0"));
  session.wait();
  REQUIRE(session.snapshot()->bytes != nullptr);
  CHECK_FALSE(session.snapshot()->bytes->window.has_value());
}

TEST_CASE("a finding that names a file and a byte leads there") {
  Session session;
  session.apply(OpenCommand{fsdp()});
  session.wait();
  auto snapshot = session.snapshot();
  Finding finding;
  finding.subjects = {"model.weight"};
  finding.evidence.emplace_back("file", snapshot->checkpoint->file(FileId{0}).path);
  finding.evidence.emplace_back("offset", std::int64_t{48});
  auto place = byte_place_of(*snapshot, finding);
  REQUIRE(place.has_value());
  CHECK(place->at == 48);
  finding.evidence[0].second = std::string("../elsewhere");
  CHECK_FALSE(byte_place_of(*snapshot, finding).has_value());
}
