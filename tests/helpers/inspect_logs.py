"""Logs of inspect_ai with a few samples, to be read as recordings."""

from inspect_ai.log import EvalLog, EvalSample, write_eval_log


def sample(number):
    """Make a sample of prompt ``number``, e.g. with the reply ``51`` for 1."""
    question = {"role": "user", "content": f"prompt {number}"}
    answer = {"role": "assistant", "content": f"5{number}"}
    choices = [{"message": answer, "stop_reason": "stop"}]
    return EvalSample(
        id=number,
        epoch=1,
        input=question["content"],
        target="",
        messages=[question, answer],
        output={"model": "m", "choices": choices},
    )


def write(file, n):
    """Write a log of ``n`` samples."""
    spec = {
        "created": "2026-01-01T00:00:00+00:00",
        "task": "t",
        "model": "m",
        "config": {},
        "dataset": {"name": "d", "samples": n},
    }
    samples = [sample(number) for number in range(n)]
    write_eval_log(EvalLog(status="success", eval=spec, samples=samples), file)
