#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/verbs/browse.h"
#include "core/verbs/recent.h"

namespace shw {

// A row of the list: a recent checkpoint, or an entry of the folder.
struct BrowserRow {
  const verbs::RecentPlace* recent = nullptr;
  const verbs::ListedPlace* place = nullptr;
};

// The rows for a text, until it or what they point into changes: a folder may have 100,000 entries.
struct BrowserRows {
  std::shared_ptr<const verbs::FolderListing> folder;
  std::shared_ptr<const verbs::RecentPlaces> recent;
  std::string text;
  std::vector<BrowserRow> rows;
};

struct BrowserState {
  bool open = false;
  bool compares = false;               // the selection is compared, not opened
  bool in_new_tab = false;             // the selection is opened in a new tab
  bool wanted = false;                 // focus the text field in the next frame
  std::string text;                    // "/runs/7/step_"
  std::optional<std::string> pending;  // new text for the field, which has its own copy of the text
  std::string replaces;                // text that `pending` replaces; later input is kept
  std::optional<std::string> asked;    // the folder of the last listing
  int row = -1;                        // selected row; -1: the typed text
  std::optional<std::string> dropped;  // a dropped path that is not yet opened
  bool is_drop_listing_requested = false;  // a listing for `dropped` was requested
  bool reveal = false;                     // scroll to the row selected by key
  BrowserRows found;
};

}  // namespace shw
