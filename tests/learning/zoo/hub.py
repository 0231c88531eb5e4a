"""Models of Hugging Face as their libraries give them, without a patch, from small configurations."""

from typing import Any

import torch
from torch import Tensor, nn

from tests.learning.zoo.case import COUNT, Case

_SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "vocab_size": 30,
    "max_position_embeddings": 24,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_IMAGE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "image_size": 16,
    "patch_size": 4,
    "num_labels": 3,
}


def _made(kind: str, config: str, **options: object) -> nn.Module:
    import transformers

    model: nn.Module = getattr(transformers, kind)(getattr(transformers, config)(**options))
    return model.train()


def _text(model: nn.Module, places: int = 9, **more: Tensor) -> Case:
    kept = torch.ones(COUNT, places, dtype=torch.int64)
    kept[::2, -3:] = 0
    batch = {"input_ids": torch.randint(3, 30, (COUNT, places)), "attention_mask": kept, **more}
    return Case(model, (batch,), lambda batch: _told(model(**batch)))


def _seen(model: nn.Module) -> Case:
    return Case(
        model, ({"pixel_values": torch.randn(COUNT, 3, 16, 16)},), lambda batch: _told(model(**batch))
    )


def _told(out: Any) -> Tensor:
    told: Tensor = out.logits if "logits" in out else out.last_hidden_state
    return told


def _encoder(name: str, **more: object) -> Case:
    return _text(_made(f"{name}ForSequenceClassification", f"{name}Config", **{**_SMALL, **more}))


def _causal(name: str, **more: object) -> Case:
    return _text(_made(f"{name}ForCausalLM", f"{name}Config", **{**_SMALL, "use_cache": False, **more}))


def bert() -> Case:
    return _encoder("Bert")


def bert_for_masked_words() -> Case:
    return _text(_made("BertForMaskedLM", "BertConfig", **_SMALL))


def roberta() -> Case:
    return _encoder("Roberta", max_position_embeddings=32)


def electra() -> Case:
    return _encoder("Electra", embedding_size=8)


def albert() -> Case:
    return _encoder("Albert", embedding_size=8)


def distilbert() -> Case:
    options = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, "vocab_size": 30}
    return _text(_made("DistilBertForSequenceClassification", "DistilBertConfig", **options))


def deberta() -> Case:
    return _encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"])


def mpnet() -> Case:
    return _encoder("MPNet")


def gpt2() -> Case:
    options = {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 30, "n_positions": 24}
    return _text(_made("GPT2LMHeadModel", "GPT2Config", bos_token_id=1, eos_token_id=2, **options))


def gpt_neo() -> Case:
    kinds = {"num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]], "window_size": 4}
    return _causal("GPTNeo", **kinds)


def gpt_neox() -> Case:
    return _causal("GPTNeoX")


def opt() -> Case:
    return _causal("OPT", ffn_dim=24, word_embed_proj_dim=16)


def bloom() -> Case:
    return _causal("Bloom", n_layer=2, n_head=2)


def llama() -> Case:
    return _causal("Llama", num_key_value_heads=1)


def mistral() -> Case:
    return _causal("Mistral", num_key_value_heads=1, sliding_window=4)


def qwen2() -> Case:
    return _causal("Qwen2", num_key_value_heads=1)


def gemma() -> Case:
    return _causal("Gemma", num_key_value_heads=1, head_dim=8)


def phi() -> Case:
    return _causal("Phi")


def _to_sequence(name: str, **more: object) -> Case:
    model = _made(f"{name}ForConditionalGeneration", f"{name}Config", use_cache=False, **more)
    return _text(model, decoder_input_ids=torch.randint(3, 30, (COUNT, 6)))


def t5() -> Case:
    return _to_sequence(
        "T5", d_model=16, d_ff=24, d_kv=8, num_layers=2, num_heads=2, vocab_size=30, decoder_start_token_id=0
    )


def bart() -> Case:
    sides = {
        f"{side}_{what}": many
        for side in ("encoder", "decoder")
        for what, many in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 24))
    }
    return _to_sequence(
        "Bart", d_model=16, vocab_size=30, max_position_embeddings=24, pad_token_id=0, **sides
    )


def vit() -> Case:
    return _seen(_made("ViTForImageClassification", "ViTConfig", **_IMAGE))


def vit_with_dropout() -> Case:
    return _seen(_made("ViTForImageClassification", "ViTConfig", hidden_dropout_prob=0.1, **_IMAGE))


def deit() -> Case:
    return _seen(_made("DeiTForImageClassification", "DeiTConfig", **_IMAGE))


def beit() -> Case:
    options = {"use_relative_position_bias": True, "layer_scale_init_value": 0.1}
    return _seen(_made("BeitForImageClassification", "BeitConfig", **_IMAGE, **options))


def dinov2() -> Case:
    model = _made("Dinov2ForImageClassification", "Dinov2Config", **_IMAGE)
    model.get_parameter("dinov2.embeddings.mask_token").requires_grad_(False)  # as the refusal advises
    return _seen(model)


_WINDOWS = {
    "image_size": 16,
    "patch_size": 2,
    "embed_dim": 8,
    "depths": [2, 2],
    "num_heads": [2, 2],
    "num_labels": 3,
}


def swin() -> Case:
    return _seen(_made("SwinForImageClassification", "SwinConfig", window_size=4, **_WINDOWS))


def swin_2() -> Case:
    return _seen(_made("Swinv2ForImageClassification", "Swinv2Config", window_size=4, **_WINDOWS))


def convnext_of_the_hub() -> Case:
    options = {"depths": [1, 1], "hidden_sizes": [8, 12], "num_stages": 2, "patch_size": 2, "num_labels": 3}
    return _seen(_made("ConvNextForImageClassification", "ConvNextConfig", **options))


def whisper_for_classes() -> Case:
    options = {
        "d_model": 16,
        "encoder_layers": 1,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "num_mel_bins": 8,
        "max_source_positions": 10,
        "classifier_proj_size": 8,
    }
    model = _made("WhisperForAudioClassification", "WhisperConfig", **options)
    return Case(model, (torch.randn(COUNT, 8, 20),), lambda x: _told(model(input_features=x)))


def _adapted(case: Case, config: str, **options: object) -> Case:
    import peft

    model = peft.get_peft_model(case.model, getattr(peft, config)(**options))
    return Case(model, case.batch, lambda batch: _told(model(**batch)))


def lora_on_bert() -> Case:
    options = {"r": 4, "lora_dropout": 0.1, "target_modules": ["query", "value"]}
    return _adapted(bert(), "LoraConfig", task_type="SEQ_CLS", **options)


def lora_on_gpt2() -> Case:
    return _adapted(gpt2(), "LoraConfig", task_type="CAUSAL_LM", r=4, fan_in_fan_out=True)


def lora_on_llama() -> Case:
    return _adapted(llama(), "LoraConfig", task_type="CAUSAL_LM", r=4, target_modules=["q_proj", "v_proj"])


def dora_on_bert() -> Case:
    return _adapted(bert(), "LoraConfig", task_type="SEQ_CLS", r=4, use_dora=True, target_modules=["query"])


def rescaled_bert() -> Case:
    options = {"target_modules": ["key", "value", "output.dense"], "feedforward_modules": ["output.dense"]}
    return _adapted(bert(), "IA3Config", task_type="SEQ_CLS", **options)
