#include "core/session/habit_run.h"

#include <algorithm>
#include <utility>

#include "core/explain/message_kinds.h"
#include "core/io/store.h"
#include "core/session/command_run.h"
#include "core/verbs/demo.h"
#include "core/verbs/ui_report.h"
#include "core/verbs/view_file.h"
#include "core/verbs/write_hashes.h"

namespace shw {

// Message on one line, with \n for breaks and \\ for backslashes.
std::optional<Command> parse_explain_error(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] != '\\') {
      text += rest[i];
      continue;
    }
    if (++i == rest.size()) return std::nullopt;
    if (rest[i] != 'n' && rest[i] != 'r' && rest[i] != '\\') return std::nullopt;
    text += rest[i] == 'n' ? '\n' : rest[i] == 'r' ? '\r' : '\\';
  }
  return ExplainErrorCommand{std::move(text)};
}

std::string print_explain_error(const Command& command) {
  std::string line;
  for (char c : as<ExplainErrorCommand>(command).text) {
    if (c == '\n')
      line += "\\n";
    else if (c == '\r')
      line += "\\r";
    else
      line += c == '\\' ? std::string("\\\\") : std::string(1, c);
  }
  return line;
}

Result<Change> run_explain_error(const Snapshot&, const Command& command, Progress*) {
  auto explained = std::make_shared<ExplainedText>();
  explained->text = as<ExplainErrorCommand>(command).text;
  explained->explanation = explain(explained->text);
  if (explained->explanation.parsed.messages.empty()) {
    const MessageKind* nearest = nearest_kind(explained->text);
    if (nearest != nullptr) explained->nearest = nearest->example;
  }
  return [explained = std::shared_ptr<const ExplainedText>(std::move(explained))](Snapshot& s) {
    s.explained = explained;
  };
}

std::optional<Command> parse_report(std::string_view rest) {
  return ReportCommand{std::string(rest)};
}

std::string print_report(const Command& command) {
  return as<ReportCommand>(command).path;
}

namespace {

std::vector<PageView> views_of_open_checkpoint(const Snapshot& snapshot) {
  std::vector<PageView> views;
  if (snapshot.pins != nullptr) {
    for (const verbs::Pin& pin : *snapshot.pins) {
      verbs::SavedView view{snapshot.options.checkpoint};
      view.tensor = pin.tensor;
      view.tile = pin.tile;
      auto page = verbs::page_view(*snapshot.checkpoint, view);
      if (!page) continue;
      page->note = pin.note;
      views.push_back(std::move(*page));
    }
  }
  if (snapshot.saved_views == nullptr) return views;
  for (const verbs::SavedView& view : *snapshot.saved_views) {
    if (view.checkpoint != snapshot.options.checkpoint) continue;
    if (auto page = verbs::page_view(*snapshot.checkpoint, view)) views.push_back(std::move(*page));
  }
  return views;
}

}  // namespace

Result<Change> run_report(const Snapshot& before, const Command& command, Progress*) {
  if (before.report == nullptr)
    return fail(ErrorKind::kUsage, "check it first: a report shows the findings of a check");
  const std::vector<PageView> views = views_of_open_checkpoint(before);
  verbs::UiReport wanted{verb_inputs(before),
                         before.options,
                         *before.report,
                         before.plan.get(),
                         before.tensor,
                         views,
                         as<ReportCommand>(command).path};
  SHW_TRY(verbs::WrittenReport written, verbs::write_ui_report(posix_store(), wanted));
  return [made = std::make_shared<const verbs::WrittenReport>(std::move(written))](Snapshot& s) {
    s.written = made;
  };
}

std::optional<Command> parse_place(std::string_view rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const auto file = verbs::parse_new_file(rest.substr(0, end));
  if (!file) return std::nullopt;
  return PlaceCommand{*file, std::string(rest.substr(std::min(end + 1, rest.size())))};
}

std::string print_place(const Command& command) {
  const auto& c = as<PlaceCommand>(command);
  return std::string(verbs::name(c.file)) + (c.path.empty() ? "" : " " + c.path);
}

Result<Change> run_inspect_new_file(const Snapshot& before, const Command& command, Progress*) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  const auto& c = as<PlaceCommand>(command);
  std::optional<TensorId> tensor = before.tensor;
  if (before.values != nullptr && before.values->values) tensor = before.values->values->tensor;
  const std::string_view fqn = tensor ? before.checkpoint->fqn(*tensor) : std::string_view();
  auto place = std::make_shared<const verbs::NewFilePlace>(verbs::inspect_new_file(
      posix_store(), verb_inputs(before), before.options, c.file, fqn, c.path));
  return [place](Snapshot& s) { s.place = place; };
}

std::optional<Command> parse_hash(std::string_view rest) {
  return HashCommand{std::string(rest)};
}

std::string print_hash(const Command& command) {
  return as<HashCommand>(command).path;
}

Result<Change> run_hash(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  SHW_TRY(verbs::WrittenReport written,
          verbs::write_hashes(posix_store(), verb_inputs(before), before.options,
                              as<HashCommand>(command).path, before.runs_over_ssh, progress));
  return [made = std::make_shared<const verbs::WrittenReport>(std::move(written))](Snapshot& s) {
    s.hashes = made;
  };
}

std::optional<Command> parse_save_view(std::string_view rest) {
  return SaveViewCommand{std::string(rest)};
}

std::string print_save_view(const Command& command) {
  return as<SaveViewCommand>(command).path;
}

Result<Change> run_save_view(const Snapshot& before, const Command& command, Progress*) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  OpenCommand here = reopen_command(before, before.options.checkpoint);
  verbs::SavedView view{std::move(here.path), std::move(here.spec),   std::move(here.against),
                        std::move(here.mesh), before.options.depth,   std::move(here.tensor),
                        std::move(here.tile), std::move(here.finding)};
  if (before.pins != nullptr) view.pins = *before.pins;
  SHW_TRY(verbs::WrittenReport written,
          verbs::write_view_file(posix_store(), verb_inputs(before), before.options, view,
                                 as<SaveViewCommand>(command).path));
  return [made = std::make_shared<const verbs::WrittenReport>(std::move(written)),
          view = std::move(view)](Snapshot& s) {
    s.saved_view = made;
    auto views = s.saved_views ? *s.saved_views : std::vector<verbs::SavedView>{};
    if (std::ranges::find(views, view) == views.end()) views.push_back(view);
    s.saved_views = std::make_shared<const std::vector<verbs::SavedView>>(std::move(views));
  };
}

std::optional<Command> parse_demo(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return DemoCommand{std::string(rest)};
}

std::string print_demo(const Command& command) {
  return as<DemoCommand>(command).folder;
}

Result<Change> run_demo(const Snapshot& before, const Command& command, Progress* progress) {
  SHW_TRY(Demo demo, make_demo(as<DemoCommand>(command).folder, progress));
  return run_open(before, OpenCommand{demo.checkpoint, demo.spec}, progress);
}

}  // namespace shw
