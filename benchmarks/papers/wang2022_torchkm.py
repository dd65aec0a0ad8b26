# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out with TorchKM; run by wang2022_table1.py in TorchKM's environment.

    python wang2022_torchkm.py IN.npz OUT.npz

IN has K, y and lambdas; OUT gets the left-out values, (n, n_lambdas). Prints the CPU
seconds, without imports. One thread; options as in TorchKM's documentation.
"""

import json
import sys
from time import process_time

import numpy as np
import torch
from torchkm.cvksvm import cvksvm

torch.set_num_threads(1)
with np.load(sys.argv[1]) as file:
    K, y = torch.from_numpy(file["K"]), torch.from_numpy(file["y"])
    lambdas = torch.from_numpy(np.sort(file["lambdas"])[::-1].copy())
n = len(y)
started = process_time()
model = cvksvm(
    Kmat=K, y=y, nlam=len(lambdas), ulam=lambdas, foldid=torch.arange(1, n + 1),
    nfolds=n, eps=1e-5, maxit=100_000, gamma=1e-8, is_exact=0, device="cpu",
)  # fmt: skip
model.fit()
seconds = process_time() - started
np.savez(sys.argv[2], values=model.pred.numpy())
print(json.dumps(seconds))
