#include "core/verbs/free_path.h"

#include <doctest/doctest.h>

#include "core/io/store.h"

using namespace shw;

TEST_CASE("free_path: a file about a checkpoint of another machine is in the working folder") {
  const std::string here = *posix_store().resolved(".");
  for (const char* checkpoint :
       {"ssh://login.cluster/runs/step_9000", "login.cluster:/runs/step_9000",
        "s3://bucket/runs/step_9000", "https://me:secret@host/runs/step_9000?sign=1"}) {
    CAPTURE(checkpoint);
    auto path = verbs::free_path(posix_store(), {checkpoint, "", "report", ".html"});
    REQUIRE(path.has_value());
    CHECK(*path == here + "/step_9000-report.html");
  }
  auto hub = verbs::free_path(posix_store(), {"hf://owner/model@main", "", "view", ".png"});
  REQUIRE(hub.has_value());
  CHECK(*hub == here + "/model-view.png");
}
