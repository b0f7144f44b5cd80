#include "core/formats/open.h"
#include "core/repair/plan/plan.h"

namespace shw {

Status choose_fill(std::string_view text, PlanOptions& options, Progress* progress) {
  constexpr std::string_view kFrom = "from:";
  if (text.empty()) {
    options.fill = FillChoice::kDefault;
  } else if (text == "zero") {
    options.fill = FillChoice::kZero;
  } else if (text == "cast") {
    options.fill = FillChoice::kCast;
  } else if (text.starts_with(kFrom) && text.size() > kFrom.size()) {
    options.fill = FillChoice::kReference;
    SHW_TRY(options.fill_source, open_to_compare(std::string(text.substr(kFrom.size())), progress));
  } else {
    return fail(ErrorKind::kUsage, "unknown fill \"" + std::string(text) + "\"", {},
                "Use zero, cast, or from:CHECKPOINT.");
  }
  return {};
}

}  // namespace shw
