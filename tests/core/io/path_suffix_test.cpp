#include "core/io/path_suffix.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/io/store.h"
#include "core/temporary_folder.h"

using namespace shw;

TEST_CASE("path_suffix: a path without an end has none") {
  for (const char* path : {"", "/", "a/b", "a@b", "a/@", "/@merged=b", "a/@Merged=b",
                           "a/@me rged=b", "a/@latest/model", "a/@dequantised/b"})
    CHECK_FALSE(parse_computed_suffix(path).has_value());
}

TEST_CASE("path_suffix: word, numbers and others") {
  const auto end = parse_computed_suffix("runs/a/@average:0.5,0.5=runs/b,/c");
  REQUIRE(end.has_value());
  CHECK(end->before == "runs/a");
  CHECK(end->word == "average");
  CHECK(end->numbers == "0.5,0.5");
  CHECK(end->others == std::vector<std::string>{"runs/b", "/c"});
  CHECK(to_path(*end) == "runs/a/@average:0.5,0.5=runs/b,/c");
}

TEST_CASE("path_suffix: ends follow one another, and others may have one") {
  const auto merged = parse_computed_suffix("a/@dequantised/@merged=b/@merged=c");
  REQUIRE(merged.has_value());
  CHECK(merged->before == "a/@dequantised/@merged=b");
  CHECK(merged->others == std::vector<std::string>{"c"});
  const auto average = parse_computed_suffix("a/@average=b/@dequantised,c/@dequantised");
  REQUIRE(average.has_value());
  CHECK(average->others == std::vector<std::string>{"b/@dequantised", "c/@dequantised"});
  CHECK(parse_computed_suffix("a/@dequantised")->word == "dequantised");
  // What is made is quantised, not the last of what it is made of.
  const auto quantised = parse_computed_suffix("a/@merged=b/@quantised:fp8-block");
  CHECK(quantised->word == "quantised");
  CHECK(quantised->numbers == "fp8-block");
  CHECK(quantised->before == "a/@merged=b");
}

TEST_CASE("path_suffix: a store resolves every path of it") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a");
  std::filesystem::create_directories(folder / "b");
  const auto resolved = posix_store().resolved(folder / "a/../a/@merged=" + (folder / "b/../b"));
  REQUIRE(resolved.has_value());
  const std::string real = std::filesystem::canonical(folder.path()).string();
  CHECK(*resolved == real + "/a/@merged=" + real + "/b");
}

TEST_CASE("path_suffix: a short path names the last folders, a stored one has no suffix") {
  CHECK(short_path("/runs/7/step_9000/") == "step_9000");
  CHECK(short_path("base") == "base");
  CHECK(short_path("/") == "/");
  CHECK(short_path("/m/base/@dequantised/@merged=/m/adapter") ==
        "base/@dequantised/@merged=adapter");
  CHECK(short_path("/m/a/@average:0.5,0.5=/n/b") == "a/@average:0.5,0.5=b");
  CHECK(path_without_suffixes("/m/base/@dequantised/@merged=/m/adapter") == "/m/base");
  CHECK(path_without_suffixes("/m/base") == "/m/base");
}
