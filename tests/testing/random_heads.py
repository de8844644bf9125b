"""Makes folders of random EAGLE-3 heads and of the targets that they belong to.

    random_heads.py --list
    random_heads.py speculators_qwen3 --out FOLDER        # FOLDER/head and FOLDER/target
    random_heads.py kimi_k2_5 --out FOLDER                # full size: 4 GB on disk, little memory
    random_heads.py A5_absolute_d2t --out FOLDER          # a broken one: see broken_heads.py

What a reader would get wrong: the same seed gives one set of numbers for a plain tensor, whatever
the producer's spelling, so two spellings of one head must draft alike.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "heads"))

import safetensors_stream as stream
from config_parts import TORCH_DTYPES
from head_layouts import head_config, spell
from head_plans import HeadPlan
from head_tensors import embedding, head_tensors
from head_variants import SHARDS, VARIANTS
from published_sizes import FULL_SIZE

DEFAULT_SEED = 20


def write_json(path: pathlib.Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def make_head(
    folder: pathlib.Path, plan: HeadPlan, seed: int = DEFAULT_SEED, shards: int = 1
) -> int:
    """Writes config.json and weights; returns the bytes of the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", head_config(plan))
    tensors = [
        tensor.renamed(stored_name(plan, tensor.name)) for tensor in head_tensors(plan, seed)
    ]
    return stream.write_folder(folder, tensors, shards)


def stored_name(plan: HeadPlan, name: str) -> str:
    """The name in the file of a tensor with this plain name, or of its scales."""
    stem, found, scale = name.partition(".weight_scale")
    return spell(plan, stem + ".weight") + found[7:] + scale if found else spell(plan, name)


def make_target(folder: pathlib.Path, plan: HeadPlan, seed: int = DEFAULT_SEED) -> None:
    """What a server needs of a target: its config, its embedding and its output matrix."""
    folder.mkdir(parents=True, exist_ok=True)
    text_config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": plan.target_hidden,
        "intermediate_size": 2 * plan.target_hidden,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "num_hidden_layers": plan.target_layers,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,  # the target's, not the head's
        "vocab_size": plan.vocab,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": not plan.target_lm_head,
        "torch_dtype": TORCH_DTYPES[plan.dtype],
    }
    names = "model.embed_tokens.weight", "lm_head.weight"
    if plan.target_kind == "multimodal":
        names = tuple("language_model." + name for name in names)
        config = {
            "architectures": ["KimiK25ForConditionalGeneration"],
            "model_type": "kimi_k25",
            "text_config": text_config,
            "vision_config": {"hidden_size": 32, "num_hidden_layers": 2},
        }
    else:
        config = text_config
    write_json(folder / "config.json", config)
    tensors = [embedding(plan, seed, names[0], plan.target_hidden, "target")]
    if plan.target_lm_head:
        shape = (plan.vocab, plan.target_hidden)
        scale = 1.3 / np.sqrt(plan.target_hidden)
        output = stream.random_normal(names[1], plan.dtype, shape, scale, seed, "target output")
        tensors.append(output)
    stream.write_folder(folder, tensors)


def make_pair(folder: pathlib.Path, name: str, seed: int = DEFAULT_SEED) -> HeadPlan:
    """FOLDER/head and FOLDER/target of a named variant, of full size or not."""
    plan = VARIANTS[name] if name in VARIANTS else FULL_SIZE[name]
    make_head(folder / "head", plan, seed, SHARDS.get(name, 1))
    make_target(folder / "target", plan, seed)
    return plan


# Of captures, in wiring order: later layers of real targets carry larger states.
CAPTURE_SCALES = (0.5, 1.0, 2.0, 0.8, 1.6)


@dataclasses.dataclass(frozen=True)
class Rows:
    """Random input of a head: aux [n, width] float32, exact in bf16; tokens [n] target ids."""

    aux: np.ndarray
    tokens: np.ndarray


def make_rows(plan: HeadPlan, count: int, seed: int = DEFAULT_SEED) -> Rows:
    generator = np.random.default_rng([seed, 5])
    captures = plan.captures if plan.use_aux else 1
    aux = generator.standard_normal((count, captures, plan.target_hidden), np.float32)
    aux *= np.array(CAPTURE_SCALES[:captures], np.float32)[:, None]
    words = stream.bf16_words(aux.reshape(count, -1))
    widened = (words.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return Rows(widened, generator.integers(0, plan.vocab, count).astype(np.int32))


def main() -> int:
    from broken_heads import BROKEN, make_broken_pair

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", nargs="?", help="a name of --list")
    parser.add_argument("--out", type=pathlib.Path, help="folder to fill with head/ and target/")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--list", action="store_true", help="print all names, one a line")
    arguments = parser.parse_args()
    names = [*VARIANTS, *FULL_SIZE, *BROKEN]
    if arguments.list:
        print("\n".join(names))
        return 0
    if arguments.name not in names or arguments.out is None:
        parser.error(f"expected --out FOLDER and a name of --list; got {arguments.name}")
    if arguments.name in BROKEN:
        make_broken_pair(arguments.out, arguments.name, arguments.seed)
    else:
        make_pair(arguments.out, arguments.name, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
