# SPDX-License-Identifier: BSD-3-Clause
"""What SVC and SVR share: fit, ``coef_`` and the warnings of a fit.

The code that solves is imported by the first fit, so that importing a class is quick.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import FloatArray
from leaveout.estimators._base import KernelModel
from leaveout.exceptions import CertificateWarning

if TYPE_CHECKING:
    from leaveout.engine._problem import Solution
    from leaveout.loo._leave_out import Fitted

# Warn if rounding errors of decision values may be larger than this.
ROUNDING = 1e-2


class ExactSVM(KernelModel):
    """An SVM solved to double precision; a subclass has ``_store``."""

    def _store(self, fitted: Fitted) -> None:
        """Set the fitted attributes, with ``fit_status_``."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Fitted:
        """Fit, and return the task with its solutions."""
        from leaveout.adapt._checks import check_kernel_size
        from leaveout.adapt._prepare import fit_task
        from leaveout.loo._leave_out import restore

        task = fit_task(self, X, y, sample_weight)
        if not task.gram.definite:
            check_kernel_size(task.K, "A kernel that is not positive semi-definite")
            self._warn_indefinite(task, stacklevel=3)
        # Coefficients that a search has computed already.
        fitted = restore(task, self.__dict__.pop("_kept_betas", None))
        self._store(fitted)
        if task.gram.definite and self.fit_status_:
            self._warn_not_converged(fitted.solutions)
        elif task.gram.definite:
            self._warn_of_rounding(task.K, fitted.solutions)
        return fitted

    @property
    def coef_(self) -> Any:
        """Weights of the features, (n_pairs or 1, n_features), if kernel="linear"."""
        check_is_fitted(self)
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ is only available with kernel='linear'; got {self.kernel!r}."
            )
        columns = self._columns()
        if sparse.issparse(self.support_vectors_):
            columns = sparse.csr_array(columns)
        weights = columns.T @ self.support_vectors_
        # Read-only: predictions use dual_coef_.
        values: Any = weights.data if sparse.issparse(weights) else weights
        values.flags.writeable = False
        return weights

    def _warn_of_rounding(self, K: FloatArray, solutions: Sequence[Solution]) -> None:
        """Warn if decision values sum such large terms that rounding may matter."""
        sums = [float(solution.alpha.sum()) for solution in solutions]
        terms = float(K.diagonal().max(initial=0.0)) * max(sums)
        if not 2.0**-52 * terms > ROUNDING:
            return
        warnings.warn(
            f"The values of f are sums of terms up to {terms:.0e} with rounding errors "
            f"up to {2.0**-52 * terms:.0e}: rounding may change predictions, and "
            "duality_gap_ is only accurate to that. Standardise the features "
            "(sklearn.preprocessing.StandardScaler) or lower C.",
            CertificateWarning,
            stacklevel=4,
        )

    def _warn_not_converged(self, solutions: Sequence[Solution]) -> None:
        """Warn about SVMs that did not reach ``tol``."""
        failed = [solution for solution in solutions if not solution.converged]
        worst = max(failed, key=lambda solution: solution.kkt_residual)
        warnings.warn(
            f"{len(failed)} of {len(solutions)} SVM(s) did not converge: KKT "
            f"residual {worst.kkt_residual:.1e}, required tol={self.tol:g} (relative "
            f"duality gap {worst.duality_gap:.1e}). Raise max_iter "
            f"(max_iter={self.max_iter}), standardise the features "
            "(sklearn.preprocessing.StandardScaler) or lower C.",
            ConvergenceWarning,
            stacklevel=4,
        )
