// Files and order of an upload to a bucket; the transfer itself is tested with moto
// (tests/remote/bucket_test.py).
#include "core/io/remote/bucket_upload.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE(
    "upload_order: what makes a folder a checkpoint goes last, and behind it what names one") {
  std::vector<Entry> files;
  for (const char* path :
       {"latest", ".metadata", "model.safetensors.index.json", "a/certificate.json", "__1_0.distcp",
        "__0_0.distcp", "sub/.metadata", "config.json"})
    files.push_back({path, EntryKind::kFile, 1});
  std::vector<std::string> order;
  for (const Entry& file : upload_order(files)) order.push_back(file.path);
  CHECK(order == std::vector<std::string>{"__0_0.distcp", "__1_0.distcp", "config.json",
                                          ".metadata", "a/certificate.json",
                                          "model.safetensors.index.json", "sub/.metadata",
                                          "latest"});
}

TEST_CASE("a target of --upload that is not a bucket is refused with what to write") {
  for (const char* target :
       {"", "/tmp", "s3:/x", "https://example.com/a", "hf://a/b", "ssh://h/p"}) {
    const Status done = check_upload_target(target);
    REQUIRE_FALSE_MESSAGE(done.has_value(), target);
    CHECK(done.error().kind == ErrorKind::kUsage);
    CHECK_FALSE(done.error().advice.empty());
  }
}
