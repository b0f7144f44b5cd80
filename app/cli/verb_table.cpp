#include "app/cli/verb_table.h"

namespace shw::cli {
namespace {

// Options: s --spec, a --against, d --data and --depth, m
// --mesh, l --limit and --values, o --out, i --in-place and --yes, p --plan, f --fail-on, g
// --fill, v --data alone, n --baseline and --policy, e --format, w --world, r --rows and --tp, b
// --memory, k --roll-back, y --yes, c --placements, t --to and --shard-size, A --against of verify,
// h --integrity, H --paths and --copy.
constexpr VerbRow kVerbs[] = {
    {"info", "", "What it is: format, tensors, ranks, bytes",
     "shardwright info step_9000\n  shardwright info step_9000 --json"},
    {"ls", "ds", "List the tensors; words and terms narrow the list",
     "shardwright ls step_9000 experts down\n  shardwright ls step_9000 rank:17 dtype:bfloat16"},
    {"show", "l", "One tensor: its tiles, their places, its values",
     "shardwright show step_9000 model.norm.weight\n"
     "  shardwright show step_9000 model.norm.weight --values --limit 8"},
    {"stats", "", "What its numbers are like: NaN, least, greatest, mean, histogram",
     "shardwright stats step_9000\n"
     "  shardwright stats step_9000 'model.layers.3.*' model.norm.weight --json"},
    {"map", "s", "Draw which rank wrote which tile",
     "shardwright map step_9000 model.layers.3.moe.experts.down_proj.weight --spec spec.json"},
    {"check", "sadmfn", "Say what is wrong, and why",
     "shardwright check step_9000 --spec spec.json\n"
     "  shardwright check step_9000 --against step_8000   another checkpoint says what is "
     "expected\n"
     "  shardwright check step_9000 --data        every byte, CRCs included"},
    {"diff", "vb", "Say how two checkpoints differ, in any formats and tiles",
     "shardwright diff step_8000 step_9000          names, shapes, dtypes, tiles\n"
     "  shardwright diff step_9000 hf --data          every value as well"},
    {"plan", "sadmgp", "Say what a repair would do, and what it would lose",
     "shardwright plan step_9000 --spec spec.json\n"
     "  shardwright plan step_9000 --spec spec.json --json > plan.json\n"
     "  shardwright plan step_9000 --plan steps.json        what a plan of steps comes to"},
    {"repair", "sadmoipgbh", "Carry the repair out, into a new folder, with a certificate",
     "shardwright repair step_9000 --spec spec.json\n"
     "  shardwright repair step_9000 --plan plan.json --out step_9000-mended --yes\n"
     "  shardwright repair step_9000 --spec spec.json --in-place --yes"},
    {"reshard", "sadmoycbh", "Cut every tensor anew, for another mesh",
     "shardwright reshard step_9000 --mesh dp=8,tp=2 --out step_9000-dp8-tp2\n"
     "  shardwright reshard step_9000 --mesh dp=8,tp=2 --placements placements.json\n"
     "      placements.json: {\"*.weight\": [\"Shard(0)\", \"Shard(1)\"], \"*\": [\"Shard(0)\", "
     "\"Replicate\"]}"},
    {"convert", "sadoytbh", "Write the same tensors in another format",
     "shardwright convert step_9000 --to safetensors --out hf\n"
     "  shardwright convert step_9000 --to torch --out whole          one file, model.pt\n"
     "  shardwright convert step_9000 --to safetensors --leave-out 'optimizer.*' --out hf\n"
     "  shardwright convert hf --to dcp --out step_0"},
    {"export-hdf5", "sadmoH",
     "A small HDF5 file through which h5py reads every tensor where it lies",
     "shardwright export-hdf5 step_9000 --out step_9000.h5\n"
     "  shardwright export-hdf5 step_9000 --out step_9000.h5 --copy      what HDF5 cannot map "
     "comes along as a copy\n"
     "  h5py.File(\"step_9000.h5\", \"r\")[\"tensors\"][\"model.norm.weight\"][:8]"},
    {"verify", "A", "Prove a repaired checkpoint against its certificate",
     "shardwright verify step_9000-repaired\n"
     "  shardwright verify step_9000-repaired --against step_9000    element by element, with what "
     "it was made of"},
    {"resume", "kb", "Go on with what was killed, or take it away",
     "shardwright resume step_9000-repaired\n"
     "  shardwright resume --roll-back step_9000-repaired"},
    {"undo", "", "Take an in-place repair back", "shardwright undo step_9000"},
    {"commit", "", "Keep an in-place repair for good", "shardwright commit step_9000"},
    {"report", "sadmogne",
     "Write what was found: a page (HTML, Markdown), JSON, tables, or a form for CI",
     "shardwright report step_9000 --spec spec.json --out report.html\n"
     "  shardwright report step_9000 --format sarif --out report.sarif    for CI: sarif, junit, "
     "github\n"
     "  shardwright report step_9000 --data --format hdf5 --out report.h5\n"
     "  shardwright report step_9000 --against step_8000 --fill from:step_8000"},
    {"explain", "wr", "Say what an error message can mean, or teach a rule",
     "shardwright explain placement-axis-moved\n"
     "  shardwright explain \"Size mismatch between saved torch.Size([64]) and current: "
     "torch.Size([128]) for optimizer.state.0.exp_avg\" --world 4:2\n"
     "  shardwright explain - < traceback.txt\n"
     "  shardwright explain glu-split-local --rows 4,8 --tp 2     what a save will come to"},
    {"demo", "", "Make a broken checkpoint to try all this on", "shardwright demo demo"},
    {"gui", "sam", "Open the desktop", "shardwright gui step_9000 --spec spec.json"},
};

}  // namespace

std::span<const VerbRow> verb_table() {
  return kVerbs;
}

}  // namespace shw::cli
