#include "core/verbs/learn.h"

#include "core/io/output_file.h"
#include "core/maps/write_map.h"
#include "core/verbs/computed_path.h"
#include "core/verbs/output_place.h"

namespace shw::verbs {

Result<LearnedMap> learn(const std::string& a, const std::string& b, const std::string& out,
                         Progress* progress) {
  if (!out.empty()) {
    SHW_TRY(const OutputTarget target, output_target(out));
    SHW_CHECK(check_output_apart(a, target.path));
    SHW_CHECK(check_output_apart(b, target.path));
  }
  SHW_TRY(const auto opened_a, open_requested_for_comparison(a, progress));
  SHW_TRY(const auto opened_b, open_requested_for_comparison(b, progress));
  SHW_TRY(LearnedMap learned, learn_map(opened_a, opened_b, progress));
  if (!out.empty() && !learned.rows.empty())
    SHW_CHECK(write_output_file(out, map_to_json(learned.map)));
  return learned;
}

}  // namespace shw::verbs
