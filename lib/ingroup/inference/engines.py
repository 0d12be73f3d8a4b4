"""Which engine answers: one name, and only the options that this engine has."""

from functools import partial

from ingroup import models
from ingroup.inference.cluster import Cluster
from ingroup.inference.engine import Engine


def find_model(name: str) -> str:
    """What a loader takes for a name: a folder, made where a package carries it, or the hub's."""
    if models.folder(name) is None and name in models.carried():
        from ingroup.inference.carried import make

        return str(make(name))
    known = models.find(name)
    return str(models.folder(name) or (known and known.hub_id) or name)


def make_engine(
    name: str, model: str, *, batch_size: int = 64, system: str = "keep", bos: str = "template",
    dtype: str = "auto", gpus: int = 1, workers: int = 1, ray_address: str = "",
    base_url: str = "", in_flight: int = 16, recordings: str = "",
) -> Engine:  # fmt: skip
    """The engine that a notebook's parameter ``ENGINE`` names; see the class of that name.

    Its library is imported here and not before: who replays recorded answers waits for no torch.
    ``model`` is a folder of ``data/models``, another folder, a name on the hub, a server's name of
    a model, or the name of the one that gave the recorded answers. Several ``workers`` are a
    :class:`ingroup.inference.cluster.Cluster`, made here without a ``ray_address``. EngineError
    where it cannot start; ValueError for another name.
    """
    if workers > 1 or ray_address:
        alike = {"batch_size": batch_size, "system": system, "bos": bos, "dtype": dtype}
        one = partial(make_engine, name, model, gpus=gpus, **alike)
        return Cluster(one, workers, ray_address, gpus)
    if name == "transformers":
        from ingroup.inference.transformers_engine import TransformersEngine

        return TransformersEngine(find_model(model), batch_size, system, bos, dtype)
    if name == "vllm":
        from ingroup.inference.vllm_engine import VLLMEngine

        return VLLMEngine(find_model(model), system, bos, gpus, dtype)
    if name == "openai":
        from ingroup.inference.openai_engine import OpenAIEngine

        return OpenAIEngine(model, base_url, in_flight).knock()
    if name == "replay":
        from ingroup.inference.replay_engine import ReplayEngine

        return ReplayEngine(recordings, model)
    raise ValueError(f"ENGINE {name!r} is unknown; expected {', '.join(models.ENGINES[:-1])}")
