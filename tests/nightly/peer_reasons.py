# SPDX-License-Identifier: BSD-3-Clause
"""Tests of scikit-learn's SVM module that our SVC cannot pass, and why."""

_WORDS = "The same input is refused, in words of our own: the test compares the words."
_PRIVATE = "The test reads or writes private attributes of scikit-learn's class."
_PROBABILITY = (
    "SVC has no `probability`, which scikit-learn deprecates: SVCCV gives "
    "probabilities from exact left-out values."
)
_NEGATIVE = (
    "A negative weight is refused: scikit-learn takes it for 0, silently. Weights of 0 "
    "are absent rows with both."
)
_TIES = (
    "break_ties=True with 'ovo' is refused by fit: scikit-learn lets fit pass and "
    "refuses in predict."
)

PEER_REASONS = {
    "test_tweak_params": _PRIVATE,
    "test_gamma_scale": _PRIVATE,
    "test_svc_raises_error_internal_representation": _PRIVATE,
    "test_probability": _PROBABILITY,
    "test_hasattr_predict_proba": _PROBABILITY,
    "test_probability_raises_futurewarning": _PROBABILITY,
    "test_svc_nusvc_probA_probB_deprecated": _PROBABILITY,
    "test_decision_function_shape[SVC]": _TIES,
    "test_svc_invalid_break_ties_param": _TIES,
    "test_negative_sample_weights_mask_all_samples": _WORDS,
    "test_negative_weights_svc_leave_just_one_label": _NEGATIVE,
    "test_negative_weights_svc_leave_two_labels[partial-mask-label-1-SVC]": _NEGATIVE,
    "test_negative_weight_equal_coeffs[partial-mask-label-1-SVC]": _NEGATIVE,
    "test_bad_input": (
        "Sparse samples are predicted by a model fitted on dense ones and the other "
        "way round; scikit-learn refuses that."
    ),
    "test_svc_nonfinite_params": _WORDS,
    "test_sparse_precomputed": _WORDS,
    "test_libsvm_convergence_warnings": (
        "Two steps of LIBSVM end far from the optimum; ours are at the optimum of this "
        "problem then, and there is nothing to warn of."
    ),
    "test_custom_kernel_not_array_input": (
        "Samples that are texts, for a kernel that takes texts, are refused: pass the "
        "Gram matrix with kernel='precomputed'."
    ),
    "test_svm_with_infinite_C": (
        "C=inf is refused with the advice to take a large number: without a separating "
        "model it has no optimum."
    ),
}
