"""Hidden states of whole texts from a Hugging Face model.

What one would get wrong: index n of output_hidden_states is not boundary n. It is taken after the
final norm, so boundary n comes from a hook on the last layer, and both can be had.
"""

from __future__ import annotations

import torch

from aerie_draft.recording import RecordedTensor
from aerie_draft.wiring import FINAL_NORM, Capture, CaptureKind


def tensor_name(capture: Capture) -> str:
    """ "boundary_15", "final_norm"."""
    if capture.kind is CaptureKind.FINAL_NORM:
        return "final_norm"
    return f"boundary_{capture.boundary}"


def recorded_tensors(captures) -> list[RecordedTensor]:
    return [RecordedTensor(tensor_name(c), str(c), c) for c in captures]


class StateCapture:
    """Hidden states of whole texts from one model. One thread at a time.

    Works on any causal model of transformers whose decoder layers stand in one list and that gives
    output_hidden_states; refuses a model where the two disagree.
    """

    def __init__(self, model, captures):
        self._model = model
        self._captures = tuple(captures)
        self._num_layers = model.config.get_text_config().num_hidden_layers
        self._layers = _decoder_layers(model, self._num_layers)
        self._checked = False

    def states(self, tokens):
        """{tensor name: [len(tokens), hidden] float32 NumPy} in one forward over all tokens."""
        outputs = {}

        def keep(name):
            def hook(module, arguments, output):
                outputs[name] = output[0] if isinstance(output, tuple) else output

            return hook

        hooks = [self._layers[-1].register_forward_hook(keep("last"))]
        if len(self._layers) > 1:
            hooks.append(self._layers[-2].register_forward_hook(keep("last but one")))
        try:
            with torch.inference_mode():
                ids = torch.tensor([list(map(int, tokens))], device=self._model.device)
                hidden = self._model(
                    input_ids=ids, output_hidden_states=True, use_cache=False
                ).hidden_states
        finally:
            for hook in hooks:
                hook.remove()
        self._check(hidden, outputs)
        places = {}
        for capture in self._captures:
            if capture.kind is CaptureKind.FINAL_NORM:
                state = hidden[self._num_layers]
            elif capture.boundary == self._num_layers:
                state = outputs["last"]
            else:
                state = hidden[capture.boundary]
            places[tensor_name(capture)] = state.reshape(len(tokens), -1).float().cpu().numpy()
        return places

    def _check(self, hidden, outputs) -> None:
        """Once a model: hooks and hidden_states speak of the same places, but for the last."""
        if self._checked:
            return
        name = type(self._model).__name__
        if len(hidden) != self._num_layers + 1:
            raise ValueError(
                f"{name} gives {len(hidden)} hidden states for {self._num_layers} layers; expected "
                f"{self._num_layers + 1}; this model cannot be recorded here"
            )
        if "last but one" in outputs and not torch.equal(
            outputs["last but one"].reshape(-1), hidden[self._num_layers - 1].reshape(-1)
        ):
            raise ValueError(
                f"the output of the last layer but one of {name} is not its hidden state "
                f"{self._num_layers - 1}; expected the residual stream from both; this model "
                "cannot be recorded here"
            )
        if FINAL_NORM in self._captures and torch.equal(
            outputs["last"].reshape(-1), hidden[self._num_layers].reshape(-1)
        ):
            raise ValueError(
                f"{name} gives its last hidden state without a final norm; expected one after it; "
                "leave --final-norm away"
            )
        self._checked = True


def _decoder_layers(model, num_layers: int):
    lists = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == num_layers
    ]
    if len(lists) != 1:
        raise ValueError(
            f"{type(model).__name__} has {len(lists)} lists of {num_layers} modules; expected one, "
            "its decoder layers; this model cannot be recorded here"
        )
    return lists[0]
