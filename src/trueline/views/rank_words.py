"""What the parts of distributed training are called in each framework, for findings over several ranks."""

from __future__ import annotations

import msgspec


class RankWords(msgspec.Struct, frozen=True):
    """`library` is what the seeds of the weights are recorded under."""

    library: str
    launch: str
    average: str
    nothing_averages: str
    every_parameter: str
    broadcast: str
    reduce: str
    divide: str
    shard: str


_WORDS = {
    "pytorch": RankWords(
        library="torch",
        launch="trueline run torchrun …",
        average="Wrap the model in `torch.nn.parallel.DistributedDataParallel` and call the wrapper in the training step.",
        nothing_averages="No DistributedDataParallel was built, and no gradient was reduced.",
        every_parameter="Include every trained parameter in the averaging: one DistributedDataParallel around all modules that "
        "are trained.",
        broadcast="broadcast the weights of rank 0 (`dist.broadcast(p.data, 0)`, or DistributedDataParallel, which does it).",
        reduce="Reduce `p.grad` itself, of every parameter, after `backward()` and before `optimizer.step()`, and "
        "divide by the world size.",
        divide="Divide by the world size after the sum (`p.grad /= world_size`), or use `op=dist.ReduceOp.AVG` where it is "
        "supported.",
        shard="Pass `sampler=DistributedSampler(dataset)` to this DataLoader instead of shuffle, and call `set_epoch` in each "
        "epoch.",
    ),
    "mindspore": RankWords(
        library="mindspore",
        launch="trueline run msrun …",
        average="Average the gradients with `nn.DistributedGradReducer(optimizer.parameters, mean=True)` before the optimizer "
        "takes them, or train with `Model` under `set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, "
        "gradients_mean=True)`.",
        nothing_averages="No DistributedGradReducer is part of the training step, and no gradient was reduced.",
        every_parameter="Include every trained parameter in the averaging: one `nn.DistributedGradReducer(optimizer.parameters)` "
        "over all gradients that the optimizer takes.",
        broadcast="broadcast the weights of rank 0 (`ops.Broadcast(0)((p,))` for each parameter and `p.set_data`; in graph mode "
        "`set_auto_parallel_context(parameter_broadcast=True)` does it).",
        reduce="Hand the optimizer what the reduction gives, for every parameter, divided by the number of ranks.",
        divide="Divide by the number of ranks after the sum, or let `DistributedGradReducer(mean=True)` do it "
        "(`gradients_mean=True` for `Model`).",
        shard="Pass `num_shards=get_group_size(), shard_id=get_rank()` to this dataset.",
    ),
}  # fmt: skip


def rank_words(framework: str | None) -> RankWords:
    return _WORDS.get(framework or "", _WORDS["pytorch"])
