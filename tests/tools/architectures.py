#!/usr/bin/env python3
"""Writes the names of tensors that each model class of transformers saves, and which of them
always come together.

    python3 tests/tools/architectures.py > assets/architectures.json

Each class is built on torch's meta device in many variants: every switch of its config turned,
every number at 0, 1 and None, every word that its code compares. A name has "*" for each number.
Names of one group are there for the same numbers in every variant: all or none of them.

    {"groups": [["model.layers.*.self_attn.", "k_proj.weight", "q_proj.weight"], ...],
     "architectures": {"LlamaForCausalLM": {"prefix": "model", "always": [0], "sometimes": [7],
                                            "ignored": ["rotary_emb.inv_freq"], "exact": true}}}

A group begins with what its names have in common. "always" are the groups that are there in all
variants and layers, "ignored" parts of names that transformers passes over in silence. "exact" is
true where transformers renames nothing when it loads; "in_memory" has the beginnings of names in a
running model that save_pretrained renames, and what it makes of them.
"""
import argparse
import copy
import inspect
import json
import multiprocessing
import os
import re
import signal
import sys
import warnings

import torch
import transformers
from transformers.models.auto import modeling_auto

HEADS = [
    "MODEL_MAPPING_NAMES", "MODEL_FOR_PRETRAINING_MAPPING_NAMES", "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES", "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES", "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES", "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_CTC_MAPPING_NAMES", "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
]
LAYERS = re.compile(r"(num_(hidden_|encoder_|decoder_)?layers|n_layers?|depth|(en|de)coder_layers)$")
EXPERTS = re.compile(r"(num_(local_)?experts|n_routed_experts|moe_num_experts)$")
ROWS = 12


class TooLong(Exception):
    pass


def sub_configs(config):
    """(path, config) of a config and all of its parts."""
    yield (), config
    for name in getattr(type(config), "sub_configs", {}):
        part = getattr(config, name, None)
        if isinstance(part, transformers.PretrainedConfig):
            for path, inner in sub_configs(part):
                yield (name,) + path, inner


def settings_of(config):
    return {k: v for k, v in vars(config).items() if not k.startswith("_")}


def build_config(cls, changes):
    """changes: {path: {key: value}}; parts are given as dicts, as config.json has them."""
    nested = {}
    for path, values in changes.items():
        at = nested
        for name in path:
            at = at.setdefault(name, {})
        at.update(values)
    return cls(**nested)


def small_changes(config):
    changes = {}
    for path, part in sub_configs(config):
        for key, value in settings_of(part).items():
            if isinstance(value, bool) or not isinstance(value, int):
                continue
            if LAYERS.search(key) and value > ROWS:
                changes.setdefault(path, {})[key] = ROWS
            if EXPERTS.search(key) and value > 8:
                changes.setdefault(path, {})[key] = 8
        if getattr(part, "vocab_size", 1) is None:
            changes.setdefault(path, {})["vocab_size"] = 64
    return changes


def words_compared(cls, key):
    """The strings that the code of a model compares a setting with."""
    source = inspect.getsource(inspect.getmodule(cls)) + inspect.getsource(inspect.getmodule(cls.config_class))
    found = re.findall(rf"\b{re.escape(key)}\s*[!=]=\s*[\"']([\w.-]+)[\"']", source)
    for words in re.findall(rf"\b{re.escape(key)}\s+(?:not )?in\s+[\[(]([^\])]*)[\])]", source):
        found += re.findall(r"[\"']([\w.-]+)[\"']", words)
    if "gated" in source and "act" in source and key == "feed_forward_proj":
        found.append("gated-gelu")
    return sorted(set(found))


def variants(cls, config):
    for path, part in sub_configs(config):
        for key, value in settings_of(part).items():
            if key in ("torch_dtype", "dtype", "chunk_size_feed_forward", "output_attentions"):
                continue
            if isinstance(value, bool):
                yield path, key, not value
            elif value is None:
                yield path, key, 8
                yield path, key, True
            elif isinstance(value, str):
                for other in words_compared(cls, key):
                    yield path, key, other
            elif isinstance(value, int) and not LAYERS.search(key):
                for other in (0, 1, None):
                    yield path, key, other
                # Some projections are there only between two widths that differ.
                if key.endswith(("_size", "_dim")) and isinstance(getattr(part, "hidden_size", None), int):
                    yield path, key, part.hidden_size
    yield (), "tie_word_embeddings", True
    yield (), "tie_word_embeddings", False


def saved_names(model):
    """As save_pretrained names them."""
    state = model.state_dict()
    try:
        from transformers.core_model_loading import revert_weight_conversion
        return list(revert_weight_conversion(model, state))
    except ImportError:
        return list(state)


def renamed_in_memory(model):
    """{beginning of a name in the state dict: what save_pretrained makes of it}"""
    try:
        from transformers.core_model_loading import revert_weight_conversion
    except ImportError:
        return {}
    state, saved, renamed, looked_at = model.state_dict(), set(saved_names(model)), {}, set()
    for name, tensor in state.items():
        if NUMBER.sub("*", name) in looked_at:
            continue
        looked_at.add(NUMBER.sub("*", name))
        try:
            alone = list(revert_weight_conversion(model, {name: tensor}))
        except Exception:
            continue
        if len(alone) != 1 or alone[0] not in saved or alone[0] == name:
            continue
        old, new = NUMBER.sub("*", name).split("."), NUMBER.sub("*", alone[0]).split(".")
        same = 0
        while same < min(len(old), len(new)) - 1 and old[-1 - same] == new[-1 - same]:
            same += 1
        renamed[".".join(old[:len(old) - same]) + "."] = ".".join(new[:len(new) - same]) + "."
    # Anything but another beginning is left out.
    is_plain = "*" not in "".join([*renamed, *renamed.values()]) and len(set(renamed.values())) == len(renamed) <= 12
    return renamed if is_plain else {}


def is_exact(cls):
    """Whether no name of the class is another one when it is loaded."""
    try:
        from transformers import conversion_mapping
    except ImportError:
        return False
    mapped = conversion_mapping._build_checkpoint_conversion_mapping()
    config = cls.config_class
    of_config = any(getattr(getattr(transformers, name, None), "config_class", None) is config for name in mapped)
    return not (of_config or config.model_type in mapped or cls.__name__ in mapped or getattr(config, "sub_configs", None)
                or getattr(cls, "_checkpoint_conversion_mapping", None))


NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


def look(model):
    """{template: set of number tuples}"""
    seen = {}
    for name in saved_names(model):
        numbers = tuple(int(n) for n in NUMBER.findall(name))
        seen.setdefault(NUMBER.sub("*", name), set()).add(numbers)
    return seen


def row_of(template):
    return template[: template.rfind("*") + 1]


def built(cls, config, **more):
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(config, **more)


def literal(pattern):
    """A pattern as a part of a name, or None where it is more than that."""
    text = pattern.removeprefix("^").removesuffix("$").removeprefix(".*").removesuffix(".*")
    text = text.replace("\\.", ".")
    text = re.sub(r"(?<=\.)\d+(?=\.)", "*", text)
    return text if len(text) >= 4 and re.fullmatch(r"[\w.*]+", text) else None


def names_of(cls, seconds):
    config_class = cls.config_class
    base = config_class()
    small = small_changes(base)
    seen = []
    facts = {"prefix": "", "may_lack": set(), "ignored": set()}

    def add(changes, **more):
        model = built(cls, build_config(config_class, changes), **more)
        facts["prefix"] = model.base_model_prefix
        if "in_memory" not in facts:
            facts["in_memory"] = renamed_in_memory(model)
        facts["may_lack"] |= set(getattr(model, "_keys_to_ignore_on_load_missing", None) or [])
        facts["may_lack"] |= set(getattr(model, "_tied_weights_keys", None) or [])
        facts["may_lack"] |= {re.escape(name) for name in getattr(model, "all_tied_weights_keys", None) or []}
        facts["ignored"] |= set(getattr(model, "_keys_to_ignore_on_load_unexpected", None) or [])
        seen.append(look(model))

    try:
        config = build_config(config_class, small)
        add(small)
    except TooLong:
        raise
    except Exception:
        small = {}
        config = base
        add(small)
    if "add_pooling_layer" in cls.__init__.__code__.co_varnames:
        add(small, add_pooling_layer=False)
    signal.alarm(seconds)
    try:
        for path, key, value in variants(cls, config):
            changes = copy.deepcopy(small)
            changes.setdefault(path, {})[key] = value
            try:
                add(changes)
            except TooLong:
                raise
            except Exception:
                continue
    except TooLong:
        print(f"{cls.__name__}: stopped after {len(seen)} variants", file=sys.stderr)
    signal.alarm(0)
    return seen, facts


def all_rows(one, name):
    """Whether each layer has the name: a list of layer kinds may leave out other names."""
    before = name.partition("*")[0]
    layers = {numbers[0] for other, rows in one.items() if other.partition("*")[0] == before
              for numbers in rows if numbers}
    return "*" not in name or {numbers[0] for numbers in one.get(name, ())} == layers


def counted_in_words(templates):
    """Names with a number in a word, as in "expert_4", where the config says how many."""
    families = {}
    for name in templates:
        families.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    return {name for names in families.values() if len(names) >= 4 for name in names}


def groups_of(seen, may_lack):
    """[(is there always, names)]"""
    lackable = [re.compile(pattern) for pattern in may_lack]
    templates = sorted({name for one in seen for name in one})
    counted = counted_in_words(templates)
    by_presence = {}
    for name in templates:
        presence = tuple(frozenset(one.get(name, ())) for one in seen)
        alone = name if name in counted or any(p.search(name) or p.search(name.replace("*", "0")) for p in lackable) else ""
        by_presence.setdefault((row_of(name), presence, alone), []).append(name)
    return [(all(presence) and not alone and all_rows(seen[0], names[0]), tuple(names))
            for (_, presence, alone), names in by_presence.items()]


def shortened(names):
    """The common beginning up to a point, then what is left of each."""
    common = os.path.commonprefix(names)
    common = common[: common.rfind(".") + 1]
    return [common] + [name[len(common):] for name in names]


def classes(only):
    found = set()
    for heads in HEADS:
        for names in getattr(modeling_auto, heads, {}).values():
            for name in (names,) if isinstance(names, str) else names:
                if re.search(only, name):
                    found.add(name)
    return sorted(found)


def stop(*_):
    raise TooLong()


def look_at(name, seconds):
    cls = getattr(transformers, name, None)
    if cls is None:
        return None
    try:
        signal.alarm(3 * seconds)
        seen, facts = names_of(cls, seconds)
    except (Exception, TooLong) as error:
        print(f"{name}: left out, {type(error).__name__} {str(error)[:80]}", file=sys.stderr)
        return None
    finally:
        signal.alarm(0)
    print(f"{name}: {len(seen)} variants", file=sys.stderr)
    ignored = sorted(set(filter(None, map(literal, facts["ignored"]))))
    return {"exact": is_exact(cls), "in_memory": facts["in_memory"], "prefix": facts["prefix"], "groups": groups_of(seen, facts["may_lack"]), "ignored": ignored}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="", help="a pattern of class names")
    options.add_argument("--seconds", type=int, default=30, help="the most for one class")
    options.add_argument("--processes", type=int, default=2)
    options = options.parse_args()
    transformers.logging.set_verbosity_error()
    signal.signal(signal.SIGALRM, stop)
    names = classes(options.only)
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        looks = pool.starmap(look_at, [(name, options.seconds) for name in names], chunksize=4)
    found = {name: one for name, one in zip(names, looks) if one}
    groups = sorted({names for one in found.values() for _, names in one["groups"]})
    number = {names: i for i, names in enumerate(groups)}
    print('{"transformers": ' + json.dumps(transformers.__version__) + ',\n"groups": [')
    print(",\n".join(json.dumps(shortened(names), separators=(",", ":")) for names in groups))
    print('],\n"architectures": {')
    rows = []
    for name, one in found.items():
        row = {"prefix": one["prefix"],
               "always": sorted(number[names] for always, names in one["groups"] if always),
               "sometimes": sorted(number[names] for always, names in one["groups"] if not always)}
        for key in ("ignored", "in_memory", "exact"):
            if one[key]:
                row[key] = one[key]
        rows.append(json.dumps(name) + ":" + json.dumps(row, separators=(",", ":")))
    print(",\n".join(rows) + "\n}}")


if __name__ == "__main__":
    main()
