#!/usr/bin/env python3
"""Writes which sizes of tensors the keys of config.json determine, for each model class of
transformers.

    python3 tests/tools/config_sizes.py > assets/config_sizes.json

Each class is built on torch's meta device in many variants: every number of its config.json edited,
every switch turned, every word that its code compares. A relation such as "q_proj.weight has
num_attention_heads*head_dim rows" is written if it is true in every variant, and if the size
followed an edit of each of its keys. The same applies to numbers of layers and experts.

    {"rows": [["model.layers.*.self_attn.", "num_attention_heads*head_dim", "hidden_size", "q_proj.weight"], ...],
     "counts": [["model.layers.", "num_hidden_layers"], ...],
     "classes": {"LlamaForCausalLM": {"types": ["llama"], "rows": [0, 3], "counts": [0]}}}

A row has what its names have in common, the expressions of the first two axes, and what is left of
each name. "*" stands for numbers; an empty expression is not known. "text_config.hidden_size" is a
key of a nested part, and "n_embd|hidden_size" are two names of one key. "types" are the model types
that have the class.
"""
import argparse
import contextlib
import copy
import itertools
import json
import multiprocessing
import os
import re
import signal
import sys

import transformers
from transformers.models.auto import modeling_auto

from architectures import HEADS, LAYERS, NUMBER, TooLong, build_config, built, settings_of, shortened, stop, \
    sub_configs, variants

LAYER_COUNT = re.compile(LAYERS.pattern + r"|layers$|depth$|blocks$")


def is_size(value):
    return isinstance(value, int) and not isinstance(value, bool)


def small_size(key, value):
    """A small value for a key of a default config; most sizes differ from each other."""
    if LAYER_COUNT.search(key):
        return min(value, 2)
    if "expert" in key:
        return min(value, 2 if "per_tok" in key or "topk" in key or "top_k" in key else 4)
    if key in ("n_group", "topk_group"):
        return 1
    if key.endswith(("_id", "_index")) or "kernel" in key or "patch" in key or "image" in key:
        return value
    if "vocab_size" in key:
        return min(value, 3000)
    return value


def small_changes(config):
    changes = {}
    for path, part in sub_configs(config):
        for key, value in settings_of(part).items():
            if is_size(value) and small_size(key, value) != value:
                changes.setdefault(path, {})[key] = small_size(key, value)
    return changes


def saved_shapes(model):
    """{name as save_pretrained writes it: shape}"""
    state = model.state_dict()
    try:
        from transformers.core_model_loading import revert_weight_conversion
        state = revert_weight_conversion(model, state)
    except ImportError:
        pass
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def sizes_of_config(config):
    """{"text_config.hidden_size": 32}, as config.json has them."""
    sizes = {}
    for key, value in config.to_dict().items():
        if isinstance(value, dict):
            sizes.update({f"{key}.{inner}": size for inner, size in value.items() if is_size(size)})
        elif is_size(value):
            sizes[key] = value
    return {key: size for key, size in sizes.items() if not key.endswith(("_id", "_index", "_idx"))}


class Variant:
    """`changed`: the key of config.json that this variant changes; empty for switches and words."""

    def __init__(self, cls, config, changed=""):
        self.changed = changed
        self.sizes = sizes_of_config(config)
        self.extents, self.numbers = {}, {}
        for name, shape in saved_shapes(built(cls, config)).items():
            template = NUMBER.sub("*", name)
            at = self.extents.setdefault(template, set())
            at.add(shape)
            parts = name.split(".")
            for i, part in enumerate(parts):
                if part.isdigit():
                    row = NUMBER.sub("*", ".".join(parts[:i]) + ".") if i else ""
                    outer = tuple(p for p in parts[:i] if p.isdigit())
                    self.numbers.setdefault(row, {}).setdefault(outer, set()).add(int(part))

    def extent(self, template, axis):
        """The size, where all tensors of the name have one; otherwise a negative number."""
        shapes = self.extents.get(template)
        if not shapes:
            return None
        found = {shape[axis] if axis < len(shape) else -2 for shape in shapes}
        return found.pop() if len(found) == 1 else -1

    def count(self, row):
        """The number of members, where each list has 0 .. n-1; otherwise a negative number."""
        lists = self.numbers.get(row)
        if not lists:
            return None
        found = {len(members) if members == set(range(len(members))) else -1 for members in lists.values()}
        return found.pop() if len(found) == 1 else -1


def value_of(expression, sizes):
    """expression: (addend, factor, key, ...)"""
    addend, product, *keys = expression
    for key in keys:
        if key not in sizes:
            return None
        product *= sizes[key]
    return product + addend


def candidates(size, sizes):
    """Expressions that have this value, simple ones first."""
    for key, value in sizes.items():
        if value == size:
            yield 0, 1, key
    for factor in (2, 3, 4):
        for key, value in sizes.items():
            if value * factor == size:
                yield 0, factor, key
    for addend in (1, 2):
        for key, value in sizes.items():
            if value + addend == size and value > 8:
                yield addend, 1, key
    keys = [key for key, value in sizes.items() if value > 1 and size % value == 0]
    for one, other in itertools.combinations(keys, 2):
        for factor in (1, 2):
            if sizes[one] * sizes[other] * factor == size:
                yield 0, factor, one, other


def holds(expression, seen, size_in):
    """Whether it is true in all variants, and the size follows in those that change one of its keys.
    Keys that another key computes do not count: an edit of theirs changes nothing."""
    first = size_in(seen[0])
    followed, varied = False, set()
    for variant in seen:
        size = size_in(variant)
        value = value_of(expression, variant.sizes)
        if size is None or value is None:
            continue
        if size != value:
            return False
        followed = followed or size != first
        key = variant.changed
        if key in expression[2:] and variant.sizes[key] != seen[0].sizes[key]:
            varied.add(key)
    return followed and varied == set(expression[2:])


def relation(seen, size_in):
    size = size_in(seen[0])
    if size is None or size < 2:
        return None
    return next((one for one in candidates(size, seen[0].sizes) if holds(one, seen, size_in)), None)


def expression_text(expression, aliases):
    if expression is None:
        return ""
    addend, factor, *keys = expression
    words = [str(factor)] if factor != 1 else []
    words += ["|".join([key, *aliases.get(key, [])]) for key in keys]
    return "*".join(words) + (f"+{addend}" if addend else "")


def aliases_of(config):
    """{"n_embd": ["hidden_size"]}: names that transformers reads for a key."""
    aliases = {}
    for path, part in sub_configs(config):
        before = ".".join(path) + "." if path else ""
        for other, key in (getattr(part, "attribute_map", None) or {}).items():
            aliases.setdefault(before + key, []).append(before + other)
    return aliases


def other_numbers(value):
    return [other for other in (value * 2, value // 2, value + 1, value - 1) if other > 0]


def edited(config, path, key, value):
    """The config as it is read after config.json was edited."""
    content = copy.deepcopy(config.to_dict())
    part = content
    for name in path:
        part = part[name]
    part[key] = value
    return type(config).from_dict(content)


def rebuilt(cls, small, path, key, value):
    changes = copy.deepcopy(small)
    changes.setdefault(path, {})[key] = value
    return build_config(cls.config_class, changes)


def tried(cls, makers, values, changed, seen):
    """Adds a variant for the first of the values that the class accepts, made by the first of the makers that can."""
    for make, value in itertools.product(makers, values):
        try:
            seen.append(Variant(cls, make(value), changed))
            return
        except TooLong:
            raise
        except Exception:
            continue


def first_variant(cls):
    """(changes, config, [variant]) with few layers, or as the default config says."""
    for small in (small_changes(cls.config_class()), {}):
        try:
            config = build_config(cls.config_class, small)
            return small, config, [Variant(cls, config)]
        except TooLong:
            raise
        except Exception as problem:
            error = problem
    raise error


def seen_of(cls):
    small, config, seen = first_variant(cls)
    for path, part in sub_configs(config):
        for key, value in settings_of(part).items():
            # Some numbers, as those of layers beside a list of their types, change only with others.
            makers = (lambda other: edited(config, path, key, other), lambda other: rebuilt(cls, small, path, key, other))
            if is_size(value) and value > 0 and not key.endswith(("_id", "_index")):
                tried(cls, makers, other_numbers(value), ".".join((*path, key)), seen)
            elif isinstance(value, list) and len(value) > 1:
                tried(cls, makers, [value[:-1], value + value[-1:]], "", seen)
    for path, key, value in variants(cls, config):
        if isinstance(value, (bool, str)):
            tried(cls, [lambda other: rebuilt(cls, small, path, key, other)], [value], "", seen)
    return config, seen


def relations_of(cls):
    """({template: expressions of the first two axes}, {list: key that counts it})"""
    config, seen = seen_of(cls)
    aliases = aliases_of(config)
    sizes, counts = {}, {}
    for template in seen[0].extents:
        found = tuple(expression_text(relation(seen, lambda v: v.extent(template, axis)), aliases) for axis in (0, 1))
        if any(found):
            sizes[template] = found
    for row in seen[0].numbers:
        found = relation(seen, lambda v: v.count(row))
        if found and len(found) == 3 and found[:2] == (0, 1):
            counts[row] = expression_text(found, aliases)
    print(f"{cls.__name__}: {len(seen)} variants, {len(sizes)} names, {len(counts)} counts", file=sys.stderr, flush=True)
    return sizes, counts


def of_other_class(cls, prefix, relations):
    """The relations of a class, for another class of the config: names that both have, where the
    part before the body's names may be there or not."""
    sizes, counts = relations
    there = first_variant(cls)[2][0]
    other = getattr(cls, "base_model_prefix", "")
    known = [("", ""), (f"{prefix}.", ""), ("", f"{other}."), (f"{prefix}.", f"{other}.")]

    def renamed(rows, names):
        found = {}
        for old, new in known:
            for name, row in rows.items():
                written = new + name[len(old):]
                if name.startswith(old) and written in names:
                    found.setdefault(written, row)
        return found
    return renamed(sizes, there.extents), renamed(counts, there.numbers)


def rows_of(sizes):
    # A bias has as many elements as its weight has rows.
    kept = {name: found for name, found in sizes.items()
            if not name.endswith(".bias") or sizes.get(name[: -len("bias")] + "weight", ("",))[0] != found[0]}
    grouped = {}
    for name, found in sorted(kept.items()):
        grouped.setdefault((name[: name.rfind("*") + 1], *found), []).append(name)
    return [(*key[1:], *names) for key, names in grouped.items()]


def look_at(names, seconds):
    """{class: rows and counts} of the classes of one config, the most telling class first."""
    found, relations, prefix = {}, None, ""
    for name in names:
        try:
            signal.alarm(seconds)
            cls = getattr(transformers, name)
            if relations is None:
                relations, prefix = relations_of(cls), cls.base_model_prefix
                of_class = relations
            else:
                of_class = of_other_class(cls, prefix, relations)
            found[name] = {"rows": rows_of(of_class[0]), "counts": sorted(of_class[1].items())}
        except (Exception, TooLong) as error:
            print(f"{name}: left out, {type(error).__name__} {str(error)[:80]}", file=sys.stderr, flush=True)
        finally:
            signal.alarm(0)
    return found


def classes_by_config(only):
    by_type, placed = {}, set()
    for heads in HEADS:
        for model_type, names in getattr(modeling_auto, heads, {}).items():
            for name in (names,) if isinstance(names, str) else names:
                if re.search(only, name) and name not in placed:
                    placed.add(name)
                    by_type.setdefault(model_type, []).append(name)
    # Classes with a head of the vocabulary have most names.
    endings = ("ForConditionalGeneration", "ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForPreTraining", "ForCTC")
    for names in by_type.values():
        names.sort(key=lambda name: next((i for i, ending in enumerate(endings) if name.endswith(ending)), 99))
    return list(by_type.values())


def types_by_class():
    found = {}
    for heads in HEADS:
        for model_type, names in getattr(modeling_auto, heads, {}).items():
            for name in (names,) if isinstance(names, str) else names:
                found.setdefault(name, set()).add(model_type)
    return found


def look_kept(task):
    names, seconds, keep = task
    path = os.path.join(keep, names[0] + ".json") if keep else ""
    if path and os.path.exists(path):
        return {name: {"rows": list(map(tuple, one["rows"])), "counts": list(map(tuple, one["counts"]))}
                for name, one in json.load(open(path)).items()}
    found = look_at(names, seconds)
    if path:
        json.dump(found, open(path, "w"))
    return found


def line_of(row):
    common, *names = shortened(row[2:])
    return json.dumps([common, *row[:2], *names], separators=(",", ":"))


def print_table(found):
    types = types_by_class()
    rows = sorted({row for one in found.values() for row in one["rows"]})
    counts = sorted({row for one in found.values() for row in one["counts"]})
    row_number = {row: i for i, row in enumerate(rows)}
    count_number = {row: i for i, row in enumerate(counts)}
    print('{"transformers": ' + json.dumps(transformers.__version__) + ',\n"rows": [')
    print(",\n".join(map(line_of, rows)))
    print('],\n"counts": [')
    print(",\n".join(json.dumps(row, separators=(",", ":")) for row in counts))
    print('],\n"classes": {')
    print(",\n".join(f'{json.dumps(name)}:' + json.dumps(
        {"types": sorted(types[name]), "rows": [row_number[row] for row in one["rows"]], "counts": [count_number[row] for row in one["counts"]]},
        separators=(",", ":")) for name, one in found.items()) + "\n}}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="", help="a pattern of class names")
    options.add_argument("--seconds", type=int, default=60, help="the most for one class")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--keep", default="", help="a folder with what earlier runs found out")
    options = options.parse_args()
    transformers.logging.set_verbosity_error()
    signal.signal(signal.SIGALRM, stop)
    tasks = [(names, options.seconds, options.keep) for names in classes_by_config(options.only)]
    # Some models print while they are built.
    with contextlib.redirect_stdout(sys.stderr), multiprocessing.get_context("fork").Pool(options.processes) as pool:
        looks = pool.map(look_kept, tasks, chunksize=1)
    found = {name: one for look in looks for name, one in sorted(look.items()) if one["rows"] or one["counts"]}
    print_table(found)


if __name__ == "__main__":
    main()
