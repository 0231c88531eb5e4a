"""Models of Hugging Face, without patches. They need `pip install -c constraints.txt -e '.[hub]'`."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from sourdine.core.errors import InvalidParameter
from sourdine.learning import check
from sourdine.learning.gradients.self_test import compare_gradients
from tests.learning.zoo import hub
from tests.learning.zoo.case import Case, held, named

pytest.importorskip("transformers")
pytest.importorskip("peft")

MODELS = named(hub)
PAGE = Path(__file__).parents[3] / "docs" / "how_to" / "hugging_face.md"

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_models(name: str) -> None:
    torch.manual_seed(7)
    _, distance = held(MODELS[name]())
    assert distance < 1e-5


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5", "vit", "lora_on_bert"])
@pytest.mark.parametrize("how", ["bfloat16", "autocast"])
def test_numbers_of_half_the_length(name: str, how: str) -> None:
    torch.manual_seed(7)
    case = MODELS[name]()
    if how == "autocast":

        def ask(*batch: object) -> torch.Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return (case.ask or case.model)(*batch)

        made = Case(case.model, case.batch, ask)
    else:
        case.model.bfloat16()
        made = Case(case.model, tuple(_half(each) for each in case.batch), case.ask)
    _, distance = held(made)
    assert distance < 2.0**-4


def _half(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _half(each) for name, each in part.items()}
    return part.bfloat16() if part.is_floating_point() else part


def test_a_parameter_that_pretraining_alone_uses_is_refused_and_the_advice_works() -> None:
    torch.manual_seed(7)
    case = hub.dinov2()
    case.model.requires_grad_(True)
    with pytest.raises(InvalidParameter, match=r"mask_token' does not move the loss.*requires_grad_"):
        compare_gradients(case.model, case.losses, case.batch)
    case.model.get_parameter("dinov2.embeddings.mask_token").requires_grad_(False)
    compare_gradients(case.model, case.losses, case.batch)


def test_masks_drawn_by_numpy_are_refused_and_the_advice_works() -> None:
    from transformers import Wav2Vec2Config, Wav2Vec2ForSequenceClassification

    items = [{"input_values": torch.randn(800), "labels": torch.tensor(i % 2)} for i in range(4)]

    def ask(share: float) -> None:
        config = Wav2Vec2Config(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            conv_dim=(16, 16),
            conv_stride=(5, 2),
            conv_kernel=(10, 3),
            num_conv_pos_embeddings=8,
            num_conv_pos_embedding_groups=4,
            classifier_proj_size=16,
            feat_extract_norm="layer",
            layerdrop=0.0,
            mask_time_prob=share,
            mask_time_length=2,
        )
        torch.manual_seed(7)
        check(Wav2Vec2ForSequenceClassification(config).train(), None, items)

    with pytest.raises(InvalidParameter, match="draws from numpy"):
        ask(0.2)
    ask(0.0)


def test_the_recipe_for_a_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(7)
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(compile(code, PAGE.name, "exec"), names)
    assert names["step"].left == 0
    assert names["trainer"].state.global_step == names["plan"].steps
    assert names["ledger"].status().blocks == 1
