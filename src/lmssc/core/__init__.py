"""The method, without any estimator: arrays, targets and parameters in, a `FitResult` out.

`fit` is the walk: `start` (`initialization`, `permutation`, `warm_start`, `confidence`), then `alternation` of the four
updates of `objective`: `loadings` (W), `latent` (H), `graph` (S), `propagation` (F). `predict` is for new samples,
`active` for what to label next.
"""
