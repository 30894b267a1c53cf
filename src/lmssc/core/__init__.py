"""The method, without any estimator: arrays, targets and parameters in, a `FitResult` out.

`fit` is the walk: `start` (`initialization`, `permutation`, `warm_start`, `confidence`), then `alternation` of the four
updates of `objective`: `loadings` (W), `latent` (H), `graph` (S), `propagation` (F), then `confidence` again. `predict`
is for new samples, with `new_samples` for their confidence, and `active` for what to label next. `incomplete_samples`
embeds samples that lack views; `one_class_components` lowers the confidence where all labels of a component are of one
class.
"""
