"""What each figure of GPU money means; every format and `docs/audit.md` say it in these words."""

from __future__ import annotations

from typing import Final

COST_DEFINITIONS: Final = {
    "GPU": "One whole accelerator, of NVIDIA, AMD or AWS (Neuron) make. A MIG slice is its share of the GPU's compute "
    "slices: 1g.10gb of an H100 is 1/7. A Neuron core, and a GPU shared by time-slicing or MPS, is its part of the device.",
    "price": "The price of a node of that instance type, divided by the GPUs of the type: CPU and memory of the node are "
    "in it. On-demand list prices of the place and day named, or those of --price-table; for Spot, savings plans and "
    "discounts they are an upper bound.",
    "held": "GPUs of the Pods that are bound to a node and have not finished, by what they request or by what their "
    "ResourceClaims were given. A device that several Pods share counts once, split evenly among them.",
    "at risk": "The part of the GPUs held that belongs to objects which would be denied. Running Pods are not touched: at "
    "risk is what stops when they are created again.",
    "idle": "GPUs that the nodes offer to Pods, less those held. A node that offers none by a device plugin, as with DRA, "
    "is taken to offer all that its type has.",
    "unpriced": "GPUs of nodes whose instance type is not known or has no price, and those held on nodes of which no GPUs "
    "are known. They are in no sum of money; no price is guessed.",
    "unbounded": "What can grow without a limit on its GPUs, and its worst case per hour. A NodePool without any limit has "
    "none; one with limits on CPU and memory alone, what these let it become as its dearest type. An autoscaler without "
    "a maximum (KEDA then takes 100), or with one that scaling/unbounded-replicas finds too high: maximum x GPUs per "
    "Pod x price of the dearest type that its node pools may launch, as far as their limits allow.",
    "wasted": "The part of idle that the shape of other Pods keeps from use: where Pods hold half of a node's GPUs or less "
    "and no waiting Pod fits beside them, all its idle ones; else those for which what is left of CPU, memory and Pod "
    "slots is too little, whichever GPU Pod of this cluster came. Beside idle: what a MIG layout leaves in no slice.",
    "pools": "By NodePool and instance type: the GPUs of the nodes there are, those held, and what all of these nodes "
    "cost an hour.",
    "month": "The figure per hour times --hours-per-month, 730 unless said otherwise.",
}
